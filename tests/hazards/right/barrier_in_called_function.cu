// The barrier sits in a function that is called, from two places.
//@ launch kernel grid 1 block 64
//@ arg x i32[64] input arange
//@ arg y i32[64] output
//@ expect y = copy(x)
__device__ __noinline__ int exchange(int* s, int v) {
    int t = threadIdx.x;
    __syncthreads();
    s[t] = v;
    __syncthreads();
    return s[63 - t];
}
extern "C" __global__ void kernel(const int* x, int* y) {
    __shared__ int s[64];
    int v = exchange(s, x[threadIdx.x]);
    v = exchange(s, v);
    y[threadIdx.x] = v;
}
