// Modifiers that kernels rarely use, a group a kernel: compiled by nvcc 13 with -arch=sm_XX -ptx and
// -cubin. All take n words of input and of output.
typedef unsigned u;

extern "C" __global__ void halves(const u* in, u* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  // Half of the numbers are subnormal.
  u a = in[i] & (i & 1 ? 0x83ff83ff : 0xbfffbfff), b = in[(i + 9) % n] & 0x83ff83ff, r, s;
  asm("{.reg .pred p, q; setp.lt.ftz.f16x2 p|q, %1, %2; selp.u32 %0, 1, 0, p; @q add.u32 %0, %0, 2;}" : "=r"(r) : "r"(a), "r"(b));
  asm("set.ge.f16x2.f16x2 %0, %1, %2;" : "=r"(s) : "r"(a), "r"(b));
  r ^= s;
  asm("set.equ.ftz.f16x2.f16x2 %0, %1, %2;" : "=r"(s) : "r"(a), "r"(b));
  r += s * 3;
  asm("{.reg .b16 h, k; mov.b32 {h, k}, %1; set.lt.u32.f16 %0, h, k;}" : "=r"(s) : "r"(a));
  r ^= s & 0x55555;
  asm("{.reg .b16 h, k; mov.b32 {h, k}, %1; cvt.sat.f32.f16 %0, h;}" : "=r"(s) : "r"(a));
  r += s * 5;
  asm("{.reg .b16 h, k; mov.b32 {h, k}, %1; ex2.approx.f16 h, h; cvt.u32.u16 %0, h;}" : "=r"(s) : "r"(a));
  r += s;
#if __CUDA_ARCH__ >= 900
  float x = __uint_as_float(in[i] & 0x83ffffff);
  asm("{.reg .b16 h; cvt.rz.ftz.bf16.f32 h, %1; cvt.u32.u16 %0, h;}" : "=r"(s) : "f"(x));
  r += s * 7;
  asm("ex2.approx.ftz.bf16x2 %0, %1;" : "=r"(s) : "r"((in[i] & 0x1fff1fff) + 0xc2f8c2f8));
  r += s * 11;
  asm("min.xorsign.abs.f16x2 %0, %1, %2;" : "=r"(s) : "r"(a), "r"(b));
  r += s * 13;
  asm("max.NaN.xorsign.abs.bf16x2 %0, %1, %2;" : "=r"(s) : "r"(a), "r"(b));
  r += s * 17;
  float y = __uint_as_float(in[(i + 5) % n]);
  asm("min.xorsign.abs.f32 %0, %1, %2;" : "=f"(y) : "f"(__uint_as_float(in[i])), "f"(y));
  r ^= __float_as_uint(y);
#endif
  out[i] = r;
}

extern "C" __global__ void atomics(const u* in, u* out, int n) {
  __shared__ float sums[32];
  __shared__ unsigned long long least[256];
  int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
  if (t < 32) sums[t] = 0;
  least[t] = in[t] * 0x100000001ull;
  __syncthreads();
  // Lanes collide: all sums are exact.
  float old = atomicAdd(&sums[t / 32 * 4 + (t & 3)], (float)(in[i % n] & 255));
  unsigned long long before = atomicMin(&least[t], in[i % n] * 0x300000002ull);
  __syncthreads();
  u r = __float_as_uint(sums[t & 31]) + (u)before * 3 + (u)(before >> 32) * 5 + (u)least[t] * 7 + (old < 8192.0f);
#if __CUDA_ARCH__ >= 900
  if (i < n / 4) {
    u *at = out + n + i * 4, a = in[i] & 0xbfffbfff, b = in[i + 1] & 0xbfffbfff, c, d;
    at[0] = in[i + 2] & 0xbfffbfff, at[1] = in[i + 3] & 0xbfffbfff, at[2] = a, at[3] = b;
    asm volatile("red.global.v2.f16x2.min.noftz [%0], {%1, %2};" ::"l"(at), "r"(a), "r"(b) : "memory");
    asm volatile("red.global.v2.bf16x2.max.noftz [%0], {%1, %2};" ::"l"(at + 2), "r"(b), "r"(a) : "memory");
    asm volatile("atom.global.v2.bf16x2.min.noftz {%0, %1}, [%2], {%3, %4};" : "=r"(c), "=r"(d) : "l"(at), "r"(b), "r"(a) : "memory");
    r ^= c + d * 3;
    asm volatile("atom.global.v2.f16x2.max.noftz {%0, %1}, [%2], {%3, %4};" : "=r"(c), "=r"(d) : "l"(at + 2), "r"(a), "r"(b) : "memory");
    r ^= c + d * 3;
  }
#endif
  if (i < n) out[i] = r;
}
