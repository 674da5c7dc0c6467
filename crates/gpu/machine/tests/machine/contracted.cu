// Products whose rounding PTX leaves open, on the way to half precision, where one unit in the last place of a
// single becomes one of a half. Compiled by NVRTC 13.0.88 with --gpu-architecture=sm_89 -default-device
// --std=c++17. Takes n words of input and of output as the other kernels here.

__device__ float product(float a, float b) {
    float c;
    asm("mul.f32 %0, %1, %2;" : "=f"(c) : "f"(a), "f"(b));
    return c;
}

__device__ float less(float a, float b) {
    float c;
    asm("sub.f32 %0, %1, %2;" : "=f"(c) : "f"(a), "f"(b));
    return c;
}

__device__ float weight(float x) {
    float y;
    unsigned short half;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(half) : "f"(y));
    asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(half));
    return y;
}

// Products that go into sums alone, and one that is read by something else.
extern "C" __global__ void weights(const unsigned* in, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float x = (int)in[i] * 0x1p-21f, s = 1.4426950408889634f;
    float y = __fadd_rn(__fmul_rn(x, s), (int)in[i + 1024] * 0x1p-31f);
    float scaled = product(x, s);
    out[i] = weight(less(scaled, y)) - weight(less(y, scaled));
    float read = product(x + 1, s);
    out[i + 1024] = weight(less(read, y)) + (read > y ? 1.0f : 0.5f);
}
