// One thread writes zeros into an array, of which the others overwrite a part behind a barrier.
//@ arch sm_100a
//@ launch kernel grid 1 block 64
//@ arg x f32[256] input arange
//@ arg y f32[256] output
//@ expect y = mapped(x, below_160)
#include "../bulk.cuh"
#include "../warpgroup.cuh"
extern "C" __global__ void kernel(const float* x, float* y) {
    __shared__ __align__(16) float s[256];
    if (threadIdx.x == 0) CLEAR(s, sizeof s);
    __syncthreads();
    for (int i = threadIdx.x; i < 160; i += 64) s[i] = x[i];
    __syncthreads();
    for (int i = threadIdx.x; i < 256; i += 64) y[i] = s[i];
}
