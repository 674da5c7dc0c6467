// Pairs of floats, sums of halves and floats, minima and maxima of three numbers and of a warp, accesses of 256 bits.
// Compiled by nvcc 13.0.88 with -arch=sm_100a -std=c++17. Takes n words of input and of output as the other kernels here.

#include <cuda_bf16.h>
#include <cuda_fp16.h>

typedef unsigned u32;
typedef unsigned long long u64;

#define PAIRS(FORM) asm volatile(FORM " %0, %1, %2;" : "=l"(r) : "l"(x), "l"(y)); KEEP
#define SUMS(FORM) asm volatile(FORM " %0, %1, %2, %3;" : "=l"(r) : "l"(x), "l"(y), "l"(z)); KEEP
#define KEEP out[i] = (u32)r ^ (u32)(r >> 32) * 3; out += 256;
#define THREE(FORM) asm volatile(FORM " %0, %1, %2, %3;" : "=f"(f) : "f"(a), "f"(b), "f"(c)); last = last * 31 + __float_as_uint(f);
#define MIXED(FORM, A, B) asm volatile("{ .reg .b16 low, high; mov.b32 {low, high}, %1; " FORM " %0, " A ", " B "%2; }" \
                                       : "=f"(f) : "r"(x32), "f"(b)); last = last * 31 + __float_as_uint(f);

// Two floats of moderate size.
__device__ u64 pair_of(u32 low, u32 high) {
    u64 r;
    asm("mov.b64 %0, {%1, %2};" : "=l"(r) : "f"((float)(int)low * 1.7e-5f), "f"((float)(int)high * 0.37f));
    return r;
}

extern "C" __global__ void pairs(const u32* in, u32* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= 256 || n < 256) return;
    u64 x = pair_of(in[i], in[i + 1]), y = pair_of(in[i + 2], in[i + 3]), z = pair_of(in[i + 4], in[i + 5]), r;
    PAIRS("add.rn.f32x2") PAIRS("sub.rn.f32x2") PAIRS("mul.rn.f32x2") PAIRS("add.rz.ftz.f32x2") PAIRS("mul.rp.f32x2")
    SUMS("fma.rn.f32x2") SUMS("fma.rm.f32x2") SUMS("fma.rn.ftz.f32x2")
    // Immediate numbers, the same in both halves and others.
    asm volatile("fma.rn.f32x2 %0, %1, %2, %3;" : "=l"(r) : "l"(x), "l"(y), "l"(0x3f8000003f800000ull)); KEEP
    asm volatile("fma.rn.f32x2 %0, %1, %2, %3;" : "=l"(r) : "l"(x), "l"(0x4040000040400000ull), "l"(y)); KEEP
    asm volatile("mul.rn.f32x2 %0, %1, %2;" : "=l"(r) : "l"(x), "l"(0x4040000041000000ull)); KEEP
}

extern "C" __global__ void extremes(const u32* in, u32* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float a = __uint_as_float(in[i]), b = __uint_as_float(in[i + 1]), c = __uint_as_float(in[i + 2]), f;
    u32 last = 0;
    THREE("max.f32") THREE("min.f32") THREE("max.NaN.f32") THREE("min.ftz.NaN.f32") THREE("max.abs.f32") THREE("min.NaN.abs.f32")
    f = fmaxf(fmaxf(-a, fabsf(b)), 3.5f); last = last * 31 + __float_as_uint(f);
    int p = in[i], q = in[i + 1], s = in[i + 2];
    last = last * 31 + max(max(p, q), s);
    last = last * 31 + min(min((u32)p, (u32)q), (u32)s);
    last = last * 31 + max(max(p, -77), q) + min(max(p, 5), q);
    last = last * 31 + __vimax3_s32_relu(p, q, s);
    out[i] = last;
}

extern "C" __global__ void mixed(const u32* in, u32* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    // Halves without NaN, whose bits are not defined.
    u32 x32 = in[i] & 0xbfffbfff, last = 0;
    float b = (float)(int)in[i + 1] * 1e-4f, f;
    MIXED("add.f32.f16", "low", "") MIXED("add.rz.f32.f16", "high", "") MIXED("sub.f32.bf16", "low", "")
    MIXED("fma.rn.f32.f16", "low", "high, ") MIXED("fma.rp.f32.bf16", "high", "low, ")
    out[i] = last;
}

extern "C" __global__ void warps(const u32* in, u32* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float a = __uint_as_float(in[i % n]), f;
    u32 last = 0;
#define WARP(FORM) asm volatile("redux.sync." FORM " %0, %1, 0xffffffff;" : "=f"(f) : "f"(a)); last = last * 31 + __float_as_uint(f);
    WARP("max.f32") WARP("min.f32") WARP("max.NaN.f32") WARP("min.abs.f32") WARP("max.abs.NaN.f32")
    last = last * 31 + __reduce_max_sync(~0u, (int)in[i % n]) + __reduce_min_sync(~0u, in[i % n]);
    last = last * 31 + __reduce_add_sync(~0u, in[i % n]) + __reduce_xor_sync(~0u, in[i % n]);
    out[i] = last;
}

// Eight words an access, forwards and backwards, with an offset and by a predicate.
extern "C" __global__ void eights(const u32* in, u32* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (8 * i + 16 > n) return;
    u32 a[8], b[8];
#define EIGHT(v) "=r"(v[0]), "=r"(v[1]), "=r"(v[2]), "=r"(v[3]), "=r"(v[4]), "=r"(v[5]), "=r"(v[6]), "=r"(v[7])
    asm volatile("ld.global.v8.b32 {%0, %1, %2, %3, %4, %5, %6, %7}, [%8];" : EIGHT(a) : "l"(in + 8 * i) : "memory");
    asm volatile("ld.global.L2::evict_last.v8.b32 {%0, %1, %2, %3, %4, %5, %6, %7}, [%8 + 32];" : EIGHT(b) : "l"(in + 8 * i) : "memory");
    const double4_32a* quads = (const double4_32a*)in;
    double4_32a quad = make_double4_32a(1.0, 2.0, 3.0, 4.0);
    if (i % 3) quad = quads[i + 1];
    u64 sum = __double_as_longlong(quad.x) * 3 + __double_as_longlong(quad.y) * 5 + __double_as_longlong(quad.z) * 7;
    sum += __double_as_longlong(quad.w);
    a[0] += (u32)sum + (u32)(sum >> 32);
    asm volatile("st.global.v8.b32 [%8], {%0, %1, %2, %3, %4, %5, %6, %7};" ::"r"(b[7] ^ a[0]), "r"(b[6] + a[1]), "r"(b[5] ^ a[2]),
                 "r"(b[4] - a[3]), "r"(b[3]), "r"(a[5]), "r"(b[1]), "r"(a[7] ^ b[0]), "l"(out + 8 * i) : "memory");
}
