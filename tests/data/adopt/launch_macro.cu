#include <cstdio>
#define CHECKED_LAUNCH(kernel, grid, block, ...) \
  do { \
    kernel<<<(grid), (block)>>>(__VA_ARGS__); \
    if (cudaGetLastError() != cudaSuccess) std::puts("not launched"); \
  } while (0)
#define BLOCK 256
constexpr int UNROLL = 4;

namespace vec {
template <typename T, int Threads = BLOCK>
__global__ void __launch_bounds__(Threads, 2) axpy(T* y, const T* x, T alpha, int n, float bias = 0.25f) {
  const int base = (blockIdx.x * Threads + threadIdx.x) * UNROLL;
  for (int i = base; i < base + UNROLL && i < n; ++i) y[i] += alpha * x[i] + bias;
}
}  // namespace vec

void launch(float* y, const float* x, float alpha, int n) {
  const dim3 block(BLOCK), grid((n + BLOCK * UNROLL - 1) / (BLOCK * UNROLL));
  CHECKED_LAUNCH(vec::axpy<float>, grid, block, y, x, alpha, n);
}

int main() {
  const int n = 100000;
  float *x, *y;
  cudaMalloc(&x, n * sizeof(float));
  cudaMalloc(&y, n * sizeof(float));
  launch(y, x, 2.0f, n);
}
