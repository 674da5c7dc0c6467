// A ring of cp.async stages: without empty groups behind the last tile the constant wait count is too high.
//@ verdict race
//@ launch kernel grid 1 block 64
//@ arg x f32[512] input arange
//@ arg y f32[512] output
#include <cuda_pipeline.h>
extern "C" __global__ void kernel(const float* x, float* y) {
    __shared__ float s[3][64];
    int t = threadIdx.x;
    for (int i = 0; i < 2; ++i) {
        __pipeline_memcpy_async(&s[i][t], x + i * 64 + t, 4); // CONFLICT
        __pipeline_commit();
    }
    for (int i = 0; i < 8; ++i) {
        __pipeline_wait_prior(1);
        __syncthreads();
        if (i + 2 < 8) {
            __pipeline_memcpy_async(&s[(i + 2) % 3][t], x + (i + 2) * 64 + t, 4); // CONFLICT
            __pipeline_commit();
        }
        y[i * 64 + t] = s[i % 3][63 - t]; // HAZARD
    }
}
