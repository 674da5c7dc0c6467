#include "common.h"
#define GEMM_F16_IMPLEMENTATION
#include "gemm_f16_launch.h"
int main() {
  long long m, n, k;
  while (scanf("%lld %lld %lld", &m, &n, &k) == 3) {
    std::vector<__half> a = random_halves(m * k), b = random_halves(k * n), c(m * n);
    __half *da = device(a), *db = device(b), *dc = device(c);
    size_t bytes = 0;
    float *scratch = nullptr;
    int status = gemm_f16_scratch_bytes(m, n, k, &bytes);
    if (!status) status = cudaMalloc(&scratch, bytes);
    if (!status) status = gemm_f16_launch(nullptr, da, db, dc, scratch, m, n, k);
    if (!status) status = cudaMemcpy(c.data(), dc, c.size() * sizeof(__half), cudaMemcpyDeviceToHost);
    double worst = 0;
    for (long long i = 0; !status && i < m * n; ++i) {
      double sum = 0;
      for (long long l = 0; l < k; ++l) sum += number(a[i / n * k + l]) * number(b[l * n + i % n]);
      worst = fmax(worst, fabs(sum - number(c[i])) / (1 + fabs(sum)));
    }
    const int chosen = gemm_f16_chosen();
    report(status, worst, chosen, gemm_f16_error(), status ? gemm_f16_tuned_none : gemm_f16_launcher::Extents_gemm[chosen](m, n, k));
    for (void *p : {(void *)da, (void *)db, (void *)dc, (void *)scratch}) cudaFree(p);
  }
  __half *one = nullptr;
  cudaMalloc(&one, 64);
  if (gemm_f16_launch(nullptr, one + 1, one, one, (float *)one, 4, 4, 4) != cudaErrorMisalignedAddress) printf("misaligned: %s\n", gemm_f16_error());
  if (gemm_f16_launch(nullptr, nullptr, one, one, (float *)one, 4, 4, 4) != cudaErrorInvalidValue) printf("null: %s\n", gemm_f16_error());
  for (long long wrong : {0LL, -1LL, 2147483648LL, 1LL << 62})
    if (gemm_f16_launch(nullptr, one, one, one, (float *)one, wrong, 4, 4) != cudaErrorInvalidValue) printf("size %lld: %s\n", wrong, gemm_f16_error());
}
