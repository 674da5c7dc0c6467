// A shuffle in a branch of half the warp names all 32 lanes; the others wait at the barrier behind it.
//@ verdict barrier_divergence|deadlock|crashed
//@ launch kernel grid 1 block 32
//@ arg x i32[32] input arange
//@ arg y i32[32] output
extern "C" __global__ void kernel(const int* x, int* y) {
    int t = threadIdx.x, v = x[t];
    if (t < 16) {
        v = __shfl_xor_sync(0xffffffffu, v, 1); // HAZARD
        y[t] = v;
    }
    __syncthreads(); // HAZARD
    if (t >= 16) y[t] = v * x[0];
}
