#include <cuda_fp16.h>
extern "C" __global__ void reference(const __half* a, const __half* b, __half* c, int M, int N, int K) {
    const int column = blockIdx.x * 128 + threadIdx.x, row = blockIdx.y;
    float sum = 0;
    for (int k = 0; k < K; ++k) sum += __half2float(a[row * K + k]) * __half2float(b[column * K + k]);
    c[row * N + column] = __float2half(sum);
}
