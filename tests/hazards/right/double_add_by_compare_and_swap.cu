// The programming guide's atomic addition of doubles for old devices, in shared memory.
//@ launch kernel grid 1 block 64
//@ arg x f64[64] input arange
//@ arg y f64[1] output
//@ expect y = sum(x)
__device__ double add(double* address, double value) {
    unsigned long long* word = (unsigned long long*)address;
    unsigned long long old = *word, assumed;
    do {
        assumed = old;
        old = atomicCAS(word, assumed, __double_as_longlong(value + __longlong_as_double(assumed)));
    } while (assumed != old);
    return __longlong_as_double(old);
}
extern "C" __global__ void kernel(const double* x, double* y) {
    __shared__ double total;
    if (threadIdx.x == 0) total = 0.0;
    __syncthreads();
    add(&total, x[threadIdx.x]);
    __syncthreads();
    if (threadIdx.x == 0) y[0] = total;
}
