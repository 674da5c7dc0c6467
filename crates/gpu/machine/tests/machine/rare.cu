// Instructions that few kernels hold, a group a kernel: compiled by NVRTC 13.0.88 with
// --gpu-architecture=sm_XX -default-device --std=c++17. All take n words of input and of output.
typedef unsigned u;
extern "C" __device__ int printf(const char*, ...);

extern "C" __global__ void doubles(const u* in, u* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  double a = (double)(int)in[i], b = (double)(int)in[(i * 5 + 1) % n] * 0.125;
  double r = fmin(a, b) - 3.0 * fmax(a, b * a) + fmin(a, 0.0);
  out[i] = (u)__double2hiint(r) ^ (u)__double2loint(r);
}

extern "C" __global__ void conversions(const u* in, u* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  u a = in[i], b = in[(i * 3 + 1) % n];
  float x = (float)(int)a * 1e-6f, y = (float)(int)b * 1e-7f;
  u r, s;
  asm("cvt.rni.s8.f32 %0, %1;" : "=r"(r) : "f"(x));
  asm("cvt.rzi.sat.u8.f32 %0, %1;" : "=r"(s) : "f"(y));
  r = r * 3 + s;
  asm("dp2a.hi.s32.u32 %0, %1, %2, %0;" : "+r"(r) : "r"(a), "r"(b));
  asm("{.reg .f16 h; .reg .b16 k; mov.b32 {h, _}, %1; cvt.f32.f16 %0, h;}" : "=r"(s) : "r"(a & 0x3fff3fff));
  r ^= s;
#if __CUDA_ARCH__ >= 800
  asm("cvt.rn.relu.bf16x2.f32 %0, %1, %2;" : "=r"(s) : "f"(x), "f"(y));
  r ^= s * 5;
  asm("{.reg .b16 h; cvt.rn.relu.f16.f32 h, %1; cvt.u32.u16 %0, h;}" : "=r"(s) : "f"(x));
  r ^= s * 7;
#endif
#if __CUDA_ARCH__ >= 900
  u v;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(v) : "f"(x));
  asm("cvt.rn.relu.tf32.f32 %0, %1;" : "=r"(s) : "f"(y));
  r ^= v + s * 3;
  asm("max.s16x2 %0, %1, %2;" : "=r"(v) : "r"(a), "r"(b));
  asm("min.relu.s16x2 %0, %1, %2;" : "=r"(s) : "r"(a), "r"(b));
  r ^= v * 5 + s;
  asm("min.u16x2 %0, %1, %2;" : "=r"(v) : "r"(a), "r"(b));
  asm("add.u16x2 %0, %1, %2;" : "=r"(s) : "r"(a), "r"(b));
  asm("max.relu.s32 %0, %0, %1;" : "+r"(s) : "r"(b));
  r += v ^ s;
  asm("{.reg .b16 h; cvt.rn.satfinite.e4m3x2.f16x2 h, %1; cvt.rn.relu.f16x2.e4m3x2 %0, h;}" : "=r"(s) : "r"(a & 0x7bff7bff));
  r ^= s;
#endif
  long long p = (long long)a * (int)b, q = (long long)(b ^ a) << 20;
  p = p < q ? p : q;
  out[i] = r + (u)p + (u)(p >> 32) + (((int)(a ^ b ^ r)) < 0 && ((int)(a & r)) >= 0 ? 77 : 0);
}

extern "C" __global__ void halves(const u* in, u* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  u a = in[i] & 0x83ff83ff, b = in[(i + 9) % n] & 0xbfffbfff, r, s;
  asm("add.ftz.f16x2 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));
  asm("mul.ftz.f16x2 %0, %1, %2;" : "=r"(s) : "r"(a), "r"(b));
  r += s;
  asm("fma.rn.ftz.f16x2 %0, %1, %2, %3;" : "=r"(s) : "r"(a), "r"(b), "r"(s));
  r ^= s;
#if __CUDA_ARCH__ >= 900
  asm("{.reg .b16 h, k; mov.b32 {h, k}, %1; cvt.rn.bf16.f16 k, h; mov.b32 %0, {k, h};}" : "=r"(s) : "r"(b));
  r ^= s * 3;
#endif
  out[i] = r;
}

__device__ __noinline__ u more(u a, u b) { return a * b + 1; }
__device__ __noinline__ u less(u a, u b) { return a / (b + 1); }

extern "C" __global__ void calls(const u* in, u* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  u a = in[i];
  u r = more(a, i);
  if (a & 1) r += less(r, 3);
  if (a == 7) r += printf("%u\n", a);
  if (i > n) asm volatile("trap;");
  out[i] = r;
}

extern "C" __global__ void arrivals(const u* in, u* out, int n) {
#if __CUDA_ARCH__ >= 800
  __shared__ unsigned long long bar;
  __shared__ u sums[8];
  u at = (u)__cvta_generic_to_shared(&bar), t = threadIdx.x, done = 0;
  // Four of each warp count twice, the others once.
  if (t == 0) asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(at), "r"(blockDim.x + blockDim.x / 8));
  if (t < 8) sums[t] = 0;
  __syncthreads();
  atomicAdd(&sums[t & 7], in[t] & 255);
  if ((t & 31) < 4) asm volatile("{.reg .b64 s; mbarrier.arrive.shared.b64 s, [%0];}" ::"r"(at) : "memory");
  asm volatile("{.reg .b64 s; mbarrier.arrive.shared.b64 s, [%0];}" ::"r"(at) : "memory");
  while (!done)
    asm volatile("{.reg .pred p; mbarrier.test_wait.parity.shared.b64 p, [%1], 0; selp.u32 %0, 1, 0, p;}"
                 : "=r"(done) : "r"(at) : "memory");
  if (blockIdx.x == 0) out[t] = sums[t & 7];
  __syncthreads();
  if (t == 0) asm volatile("mbarrier.inval.shared.b64 [%0];" ::"r"(at) : "memory");
#else
  if (blockIdx.x == 0) out[threadIdx.x] = in[threadIdx.x];
#endif
}
