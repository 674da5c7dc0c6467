// Pairs of constants whose address is in a register that the load itself writes: compiled by NVRTC
// 13.0.88 with --gpu-architecture=sm_90 -default-device --std=c++17.
typedef unsigned u;
#define FOUR(n) {n, n * 77}, {n + 1, n * 5}, {n + 2, n * 31 + 1}, {n + 3, n - 0.5f}
#define SIXTEEN(n) FOUR(n), FOUR(n * 3 + 4), FOUR(n * 7 + 8), FOUR(n * 5 + 12)
__constant__ float2 corners[64] = {SIXTEEN(1), SIXTEEN(100), SIXTEEN(40000), SIXTEEN(77777)};

extern "C" __global__ void corners_of(const u* in, u* out, int n) {
  int i = blockIdx.x * 256 + threadIdx.x;
  if (i >= n) return;
  float s = i;
  int k = 63;
  for (int j = 0; j <= 63; k = j++) {
    float2 a = corners[j], b = corners[k];
    s = s * 0.5f + (b.x - a.x) / (b.y - a.y);
  }
  out[i] = __float_as_uint(s);
}
