// A prefetch distance of two in a ring of two stages: the copy lands in the stage being read.
//@ verdict race
//@ launch kernel grid 1 block 64
//@ arg x f32[512] input arange
//@ arg y f32[512] output
#include <cuda_pipeline.h>
extern "C" __global__ void kernel(const float* x, float* y) {
    __shared__ float s[2][64];
    int t = threadIdx.x;
    for (int i = 0; i < 2; ++i) {
        __pipeline_memcpy_async(&s[i][t], x + i * 64 + t, 4);
        __pipeline_commit();
    }
    for (int i = 0; i < 8; ++i) {
        __pipeline_wait_prior(1);
        __syncthreads();
        if (i + 2 < 8) __pipeline_memcpy_async(&s[(i + 2) % 2][t], x + (i + 2) * 64 + t, 4); // HAZARD
        __pipeline_commit();
        y[i * 64 + t] = s[i % 2][63 - t]; // HAZARD
    }
}
