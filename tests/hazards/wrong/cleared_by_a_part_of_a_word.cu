// The size is not a multiple of eight bytes.
//@ verdict crashed
//@ arch sm_100a
//@ launch kernel grid 1 block 64
//@ arg x f32[256] input arange
//@ arg y f32[256] output
#include "../bulk.cuh"
#include "../warpgroup.cuh"
extern "C" __global__ void kernel(const float* x, float* y) {
    __shared__ __align__(16) float s[256];
    for (int i = threadIdx.x; i < 256; i += 64) s[i] = x[i];
    __syncthreads();
    if (threadIdx.x == 0) CLEAR(s, 1020); // HAZARD
    __syncthreads();
    for (int i = threadIdx.x; i < 256; i += 64) y[i] = s[i];
}
