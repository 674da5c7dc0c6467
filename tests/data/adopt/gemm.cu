// A library's kernel: template parameters, a namespace, a launcher, and a header of its own.
#include "util.h"
#include <cublas_v2.h>

namespace lib {

template <const int BM, const int BN, const int BK, typename T>
__global__ void __launch_bounds__(BM * BN)
    gemm(int M, int N, int K, const T *__restrict__ A, const T *__restrict__ B, T *C) {
  __shared__ T a[BM][BK];
  __shared__ T b[BK][BN];
  const int row = blockIdx.y * BM + threadIdx.y;
  const int col = blockIdx.x * BN + threadIdx.x;
  T sum = 0;
  for (int k = 0; k < K; k += BK) {
    for (int i = threadIdx.x; i < BK; i += BN)
      a[threadIdx.y][i] = row < M && k + i < K ? A[row * K + k + i] : T(0);
    for (int i = threadIdx.y; i < BK; i += BM)
      b[i][threadIdx.x] = col < N && k + i < K ? B[(k + i) * N + col] : T(0);
    __syncthreads();
    for (int i = 0; i < BK; ++i) sum = fused(a[threadIdx.y][i], b[i][threadIdx.x], sum);
    __syncthreads();
  }
  if (row < M && col < N) C[row * N + col] = sum;
}

void run(int M, int N, int K, float *A, float *B, float *C) {
  const int BM = 16;
  const int BN = 16;
  const int BK = 16;
  dim3 grid(CEIL_DIV(N, BN), CEIL_DIV(M, BM));
  dim3 block(BN, BM);
  gemm<BM, BN, BK, float><<<grid, block>>>(M, N, K, A, B, C);
}

} // namespace lib

int main() {
  const int M = 512, N = 256, K = 128;
  float *A, *B, *C;
  check(cudaMalloc((void **)&A, M * K * sizeof(float)));
  check(cudaMalloc((void **)&B, K * N * sizeof(float)));
  check(cudaMalloc((void **)&C, M * N * sizeof(float)));
  lib::run(M, N, K, A, B, C);
  return 0;
}
