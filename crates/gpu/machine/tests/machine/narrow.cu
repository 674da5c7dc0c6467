// Conversions to and from numbers of four, six and eight bits by the intrinsics of CUDA's headers.
// nvcc 13.0 -ptx and -cubin of each architecture; before 10.0 the headers convert in software.
#include <cuda_fp4.h>
#include <cuda_fp6.h>
#include <cuda_fp8.h>
#define AT (blockIdx.x * blockDim.x + threadIdx.x)
extern "C" __global__ void narrow(const unsigned *in, unsigned *out, int) {
    unsigned i = AT;
    const float *f = (const float *)in;
    float2 p = {f[4 * i % 4096], f[(4 * i + 1) % 4096]};
    unsigned four = __nv_cvt_float2_to_fp4x2(p, __NV_E2M1, cudaRoundNearest);
    unsigned one = __nv_cvt_float_to_fp4(p.y, __NV_E2M1, cudaRoundNearest);
    unsigned six = __nv_cvt_float2_to_fp6x2(p, __NV_E2M3, cudaRoundNearest);
    unsigned other = __nv_cvt_float2_to_fp6x2(p, __NV_E3M2, cudaRoundNearest);
    out[4 * i % 4096] = four | one << 8 | six << 16;
    out[(4 * i + 1) % 4096] = other;
    __nv_bfloat162_raw h;
    h.x = in[(4 * i + 2) % 4096];
    h.y = in[(4 * i + 2) % 4096] >> 16;
    out[(4 * i + 2) % 4096] = __nv_cvt_float2_to_e8m0x2(p, __NV_SATFINITE, cudaRoundPosInf) |
                              __nv_cvt_float2_to_e8m0x2(p, __NV_NOSAT, cudaRoundZero) << 16;
    out[(4 * i + 3) % 4096] = __nv_cvt_bfloat162raw_to_e8m0x2(h, __NV_NOSAT, cudaRoundPosInf) |
                              __nv_cvt_bfloat162raw_to_e8m0x2(h, __NV_SATFINITE, cudaRoundZero) << 16;
}
extern "C" __global__ void widen(const unsigned *in, unsigned *out, int) {
    unsigned i = AT, w = in[i];
    __half2_raw four = __nv_cvt_fp4x2_to_halfraw2(w, __NV_E2M1), upper = __nv_cvt_fp4x2_to_halfraw2(w >> 8, __NV_E2M1);
    __half2_raw six = __nv_cvt_fp6x2_to_halfraw2(w & 0x3f3f, __NV_E2M3);
    __half2_raw other = __nv_cvt_fp6x2_to_halfraw2(w >> 16 & 0x3f3f, __NV_E3M2);
    __nv_bfloat162_raw power = __nv_cvt_e8m0x2_to_bf162raw(w >> 16);
    out[4 * i % 4096] = four.x | (unsigned)four.y << 16;
    out[(4 * i + 1) % 4096] = upper.x ^ (unsigned)upper.y << 16;
    out[(4 * i + 2) % 4096] = (six.x | (unsigned)six.y << 16) + 3 * (other.x | (unsigned)other.y << 16);
    out[(4 * i + 3) % 4096] = power.x | (unsigned)power.y << 16;
}
#include <cuda_bf16.h>
#include <cuda_fp16.h>
// Roundings of both halves, complex products, signs of NaN, and sums of differences of bytes.
extern "C" __global__ void halves(const unsigned *in, unsigned *out, int) {
    unsigned i = AT;
    __half2 a = ((const __half2 *)in)[i], b = ((const __half2 *)in)[i + 1024], c = ((const __half2 *)in)[i + 2048];
    __nv_bfloat162 p = ((const __nv_bfloat162 *)in)[i], q = ((const __nv_bfloat162 *)in)[i + 1024];
    ((__half2 *)out)[4 * i] = __hcmadd(a, b, h2floor(c));
    ((__half2 *)out)[4 * i + 1] = __hadd2(h2rint(a), __hneg2(__habs2(c)));
    ((__nv_bfloat162 *)out)[4 * i + 2] = __hcmadd(p, q, h2rint(p));
    unsigned d, e;
    asm("vabsdiff4.u32.u32.u32 %0, %1, %2, %3;" : "=r"(d) : "r"(in[i]), "r"(in[i + 1024]), "r"(in[i + 2048]));
    asm("vabsdiff4.s32.s32.s32.add %0, %1, %2, %3;" : "=r"(e) : "r"(in[i]), "r"(in[i + 1024]), "r"(in[i + 2048]));
    out[4 * i + 3] = d + 3 * e + __float_as_uint(__bfloat162float(p.x));
}
// Sums, differences and extremes of packed integers.
extern "C" __global__ void packed(const unsigned *in, unsigned *out, int) {
    unsigned i = AT, a = in[i], b = in[i + 1024], c = in[i + 2048];
    out[4 * i] = __vsub2(a, b) ^ __vneg2(c);
    out[4 * i + 1] = __vabsdiffu4(a, b) + 3 * __vsads4(b, c) + 5 * __vabs4(a);
    out[4 * i + 2] = __viaddmax_s16x2_relu(a, b, c) ^ __viaddmin_u16x2(b, c, a);
    out[4 * i + 3] = __vimax3_s16x2(a, b, c) + 7 * __vimin3_u16x2(a, b, c);
}
// Sums, differences and products of 128 bits: carries between halves of 64.
extern "C" __global__ void wide(const unsigned *in, unsigned *out, int) {
    unsigned i = AT;
    const uint4 *words = (const uint4 *)in;
    uint4 x = words[i], y = words[(i + 512) % 1024];
    unsigned __int128 a, b;
    memcpy(&a, &x, 16);
    memcpy(&b, &y, 16);
    if (i % 4 == 0) b = ~a + i % 8;
    unsigned __int128 r = i % 2 ? (a + b) ^ (b - a) : a + b + (a < b) * (a * b);
    memcpy((uint4 *)out + i, &r, 16);
}
