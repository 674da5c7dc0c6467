// C = A * B in float32, row-major: one element a thread, summed in float64. Slow and obviously
// right; never tuned. Takes the arguments of kernel.cu; `partial` is not used.
//
// Launch: grid [ceil_div(N, 16), ceil_div(M, 16), 1], block [16, 16, 1].

extern "C" __global__ void gemm_f32_reference(const float* a, const float* b, float* c,
                                              float* partial, int M, int N, int K) {
  const int row = blockIdx.y * blockDim.y + threadIdx.y;
  const int column = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= M || column >= N) return;
  double sum = 0;
  for (int k = 0; k < K; ++k) {
    sum += static_cast<double>(a[static_cast<size_t>(row) * K + k]) *
           static_cast<double>(b[static_cast<size_t>(k) * N + column]);
  }
  c[static_cast<size_t>(row) * N + column] = static_cast<float>(sum);
}
