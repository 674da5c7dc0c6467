// A generic pointer runs from shared memory past its window's end.
//@ verdict out_of_bounds
//@ launch kernel grid 1 block 32
//@ arg x i32[32] input arange
//@ arg y i32[32] output
__device__ __noinline__ int fetch(const int* p, int i) {
    return p[i]; // HAZARD
}
extern "C" __global__ void kernel(const int* x, int* y) {
    __shared__ int s[32];
    int t = threadIdx.x;
    s[t] = x[t];
    __syncthreads();
    y[t] = fetch(s, 2 * x[t]);
}
