// C = A B in single precision: 128x128 tiles, 256 threads, 8x8 results a thread.
#define BM 128
#define BN 128
#define BK 16
extern "C" __global__ void __launch_bounds__(256)
gemm(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c, int n) {
  __shared__ __align__(16) float sa[BK][BM + 4];
  __shared__ __align__(16) float sb[BK][BN];
  int row = blockIdx.y * BM, col = blockIdx.x * BN;
  int ty = threadIdx.x / 16 * 8, tx = threadIdx.x % 16 * 4;
  float acc[8][8] = {};
  for (int k = 0; k < n; k += BK) {
    for (int i = threadIdx.x; i < BM * BK / 4; i += 256) {
      int r = i / (BK / 4), q = i % (BK / 4) * 4;
      float4 v = *(const float4*)(a + (size_t)(row + r) * n + k + q);
      sa[q][r] = v.x; sa[q + 1][r] = v.y; sa[q + 2][r] = v.z; sa[q + 3][r] = v.w;
    }
    for (int i = threadIdx.x; i < BN * BK / 4; i += 256) {
      int r = i / (BN / 4), q = i % (BN / 4) * 4;
      *(float4*)&sb[r][q] = *(const float4*)(b + (size_t)(k + r) * n + col + q);
    }
    __syncthreads();
#pragma unroll
    for (int kk = 0; kk < BK; kk++) {
      float x[8], y[8];
      *(float4*)x = *(float4*)&sa[kk][ty]; *(float4*)(x + 4) = *(float4*)&sa[kk][ty + 4];
      *(float4*)y = *(float4*)&sb[kk][tx]; *(float4*)(y + 4) = *(float4*)&sb[kk][tx + 64];
#pragma unroll
      for (int i = 0; i < 8; i++)
#pragma unroll
        for (int j = 0; j < 8; j++) acc[i][j] += x[i] * y[j];
    }
    __syncthreads();
  }
  for (int i = 0; i < 8; i++)
    for (int h = 0; h < 2; h++)
      *(float4*)(c + (size_t)(row + ty + i) * n + col + tx + 64 * h) =
        make_float4(acc[i][4 * h], acc[i][4 * h + 1], acc[i][4 * h + 2], acc[i][4 * h + 3]);
}
// A block with next to nothing to do.
extern "C" __global__ void tiny(float* x) {
  __shared__ float s[64];
  int t = threadIdx.x;
  s[t] = blockIdx.x; __syncthreads();
  x[blockIdx.x * 64 + t] = s[63 - t];
}
