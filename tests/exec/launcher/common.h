#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <cmath>
#include <cstdio>
#include <vector>
static unsigned seed = 1;
static float next() {
  seed = seed * 1664525u + 1013904223u;
  return (float)((seed >> 9) % 1000) / 500.0f - 1.0f;
}
static std::vector<__half> random_halves(long long count) {
  std::vector<__half> values(count);
  for (auto &value : values) value = __float2half(next());
  return values;
}
static double number(__half value) { return (double)__half2float(value); }
template <class T> static T *device(const std::vector<T> &host) {
  T *copy = nullptr;
  cudaMalloc(&copy, host.size() * sizeof(T));
  cudaMemcpy(copy, host.data(), host.size() * sizeof(T), cudaMemcpyHostToDevice);
  return copy;
}
/* One line for each shape: what the launcher did. */
template <class Launch> static void report(int status, double worst, int chosen, const char *error, const Launch &at) {
  if (status) printf("refused %d %s\n", status, error);
  else printf("%s %d %lld %lld %lld %lld %lld %lld %lld\n", worst < 2e-2 ? "right" : "wrong", chosen, at.grid[0], at.grid[1], at.grid[2],
      at.block[0], at.block[1], at.block[2], at.shared_bytes);
}
