// C = A B, one thread an element, float64 sums: obviously right, never tuned. Arguments as in
// kernel.cu; `partial` is not used. Grid [ceil(M N / 128)], block [128].

#ifndef BF16
#define BF16 0      // 1: elements are bf16, 0: fp16
#endif

__device__ double value_of(unsigned short bits) {
    float x;
#if BF16
    x = __uint_as_float((unsigned)bits << 16);
#else
    asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(bits));
#endif
    return x;
}

extern "C" __global__ void gemm_reference(const unsigned short* a, const unsigned short* b, unsigned short* c, float*,
                                          int M, int N, int K) {
    const long long at = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= (long long)M * N) return;
    const long long m = at / N, n = at % N;
    double sum = 0.0;
    for (long long k = 0; k < K; ++k) sum += value_of(a[m * K + k]) * value_of(b[k * N + n]);
    unsigned short bits;
#if BF16
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"((float)sum));
#else
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"((float)sum));
#endif
    c[at] = bits;
}
