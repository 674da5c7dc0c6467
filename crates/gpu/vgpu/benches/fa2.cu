// Attention forward in the style of FlashAttention-2: 64x64 tiles, 4 warps, cp.async double buffer.
#include <cuda_fp16.h>
#define D 64
#define BM 64
#define BN 64
#define PAD 8
#define LD (D + PAD)
__device__ __forceinline__ unsigned smem(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }
__device__ __forceinline__ void copy16(void* to, const void* from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(smem(to)), "l"(from));
}
__device__ __forceinline__ void ldsm(unsigned (&r)[4], const half* p) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
    : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(smem(p)));
}
__device__ __forceinline__ void ldsm_t(unsigned (&r)[4], const half* p) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
    : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(smem(p)));
}
__device__ __forceinline__ void mma(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
    : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
__device__ __forceinline__ unsigned pack(float lo, float hi) {
  half2 h = __floats2half2_rn(lo, hi); return *(unsigned*)&h;
}
__device__ __forceinline__ void tile(half* to, const half* from) {
  for (int i = threadIdx.x; i < 64 * D / 8; i += 128) {
    int r = i / (D / 8), c = i % (D / 8) * 8;
    copy16(to + r * LD + c, from + r * D + c);
  }
}
extern "C" __global__ void __launch_bounds__(128)
attention(const half* __restrict__ q, const half* __restrict__ k, const half* __restrict__ v, half* __restrict__ o, int S, float scale) {
  extern __shared__ half sh[];
  half* sq = sh; half* sk = sq + BM * LD; half* sv = sk + 2 * BN * LD;
  size_t head = (size_t)blockIdx.y * S * D;
  int lane = threadIdx.x & 31, warp = threadIdx.x / 32;
  q += head + (size_t)blockIdx.x * BM * D; k += head; v += head; o += head + (size_t)blockIdx.x * BM * D;
  tile(sq, q); tile(sk, k); tile(sv, v);
  asm volatile("cp.async.commit_group;");
  float acc[8][4] = {}; float mx[2] = {-1e30f, -1e30f}, sum[2] = {0, 0};
  unsigned qa[4][4];
  int n = S / BN;
  for (int j = 0; j < n; j++) {
    if (j + 1 < n) {
      tile(sk + ((j + 1) & 1) * BN * LD, k + (size_t)(j + 1) * BN * D);
      tile(sv + ((j + 1) & 1) * BN * LD, v + (size_t)(j + 1) * BN * D);
    }
    asm volatile("cp.async.commit_group;");
    asm volatile("cp.async.wait_group 1;");
    __syncthreads();
    const half* kt = sk + (j & 1) * BN * LD; const half* vt = sv + (j & 1) * BN * LD;
    if (j == 0) for (int t = 0; t < 4; t++) ldsm(qa[t], sq + (warp * 16 + lane % 16) * LD + t * 16 + lane / 16 * 8);
    float s[8][4] = {};
#pragma unroll
    for (int t = 0; t < 4; t++)
#pragma unroll
      for (int c = 0; c < 4; c++) {
        unsigned b[4];
        ldsm(b, kt + (c * 16 + lane % 16) * LD + t * 16 + lane / 16 * 8);
        mma(s[2 * c], qa[t], b[0], b[2]); mma(s[2 * c + 1], qa[t], b[1], b[3]);
      }
#pragma unroll
    for (int r = 0; r < 2; r++) {
      float m = mx[r];
#pragma unroll
      for (int c = 0; c < 8; c++) m = fmaxf(m, fmaxf(s[c][2 * r], s[c][2 * r + 1]));
      m = fmaxf(m, __shfl_xor_sync(~0u, m, 1)); m = fmaxf(m, __shfl_xor_sync(~0u, m, 2));
      float f = exp2f((mx[r] - m) * scale); mx[r] = m; sum[r] *= f;
#pragma unroll
      for (int c = 0; c < 8; c++) {
        acc[c][2 * r] *= f; acc[c][2 * r + 1] *= f;
        s[c][2 * r] = exp2f((s[c][2 * r] - m) * scale); s[c][2 * r + 1] = exp2f((s[c][2 * r + 1] - m) * scale);
        sum[r] += s[c][2 * r] + s[c][2 * r + 1];
      }
    }
#pragma unroll
    for (int t = 0; t < 4; t++) {
      unsigned p[4] = {pack(s[2 * t][0], s[2 * t][1]), pack(s[2 * t][2], s[2 * t][3]),
                       pack(s[2 * t + 1][0], s[2 * t + 1][1]), pack(s[2 * t + 1][2], s[2 * t + 1][3])};
#pragma unroll
      for (int c = 0; c < 4; c++) {
        unsigned b[4];
        ldsm_t(b, vt + (t * 16 + lane % 16) * LD + c * 16 + lane / 16 * 8);
        mma(acc[2 * c], p, b[0], b[1]); mma(acc[2 * c + 1], p, b[2], b[3]);
      }
    }
    __syncthreads();
  }
  for (int r = 0; r < 2; r++) {
    sum[r] += __shfl_xor_sync(~0u, sum[r], 1); sum[r] += __shfl_xor_sync(~0u, sum[r], 2);
    float inv = 1.f / sum[r];
    for (int c = 0; c < 8; c++) {
      half2 h = __floats2half2_rn(acc[c][2 * r] * inv, acc[c][2 * r + 1] * inv);
      *(half2*)(o + (warp * 16 + lane / 4 + r * 8) * D + c * 8 + lane % 4 * 2) = h;
    }
  }
}
