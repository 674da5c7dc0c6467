// The asynchronous copies of cuda_pipeline_primitives.h, two stages deep.
//@ launch kernel grid 1 block 64
//@ arg x f32[512] input mod 17
//@ arg y f32[64] output
//@ expect y = column_sum(x, 64)
#include <cuda_pipeline_primitives.h>
extern "C" __global__ void kernel(const float* x, float* y) {
    __shared__ float stage[2][64];
    int t = threadIdx.x;
    float sum = 0.0f;
    __pipeline_memcpy_async(&stage[0][t], &x[t], 4);
    __pipeline_commit();
    for (int i = 0; i < 8; ++i) {
        if (i + 1 < 8) __pipeline_memcpy_async(&stage[(i + 1) % 2][t], &x[(i + 1) * 64 + t], 4);
        __pipeline_commit();
        __pipeline_wait_prior(1);
        __syncthreads();
        sum += stage[i % 2][63 - t];
        __syncthreads();
    }
    y[63 - t] = sum;
}
