// Four stages of cp.async; behind the last tile empty groups keep the wait's count constant.
//@ launch kernel grid 1 block 64
//@ arg x f32[768] input arange
//@ arg y f32[768] output
//@ expect y = reverse_blocks(x, 64)
#include <cuda_pipeline.h>
extern "C" __global__ void kernel(const float* x, float* y) {
    __shared__ float s[4][64];
    int t = threadIdx.x;
    for (int i = 0; i < 3; ++i) {
        __pipeline_memcpy_async(&s[i][t], x + i * 64 + t, 4);
        __pipeline_commit();
    }
    for (int i = 0; i < 12; ++i) {
        __pipeline_wait_prior(2);
        __syncthreads();
        if (i + 3 < 12) __pipeline_memcpy_async(&s[(i + 3) % 4][t], x + (i + 3) * 64 + t, 4);
        __pipeline_commit();
        y[i * 64 + t] = s[i % 4][63 - t];
    }
}
