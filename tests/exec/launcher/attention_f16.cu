#include "common.h"
#define ATTENTION_F16_IMPLEMENTATION
#include "attention_f16_launch.h"
int main() {
  long long b, h, s, t, d, causal;
  while (scanf("%lld %lld %lld %lld %lld %lld", &b, &h, &s, &t, &d, &causal) == 6) {
    std::vector<__half> q = random_halves(b * h * s * d), k = random_halves(b * h * t * d), v = random_halves(b * h * t * d), o(q.size());
    __half *dq = device(q), *dk = device(k), *dv = device(v), *d_o = device(o);
    const float scale = 1.0f / sqrtf((float)d);
    size_t bytes = 0;
    float *scratch = nullptr;
    int status = attention_f16_scratch_bytes(b, h, s, t, d, causal, &bytes);
    if (!status) status = cudaMalloc(&scratch, bytes);
    if (!status) status = attention_f16_launch(nullptr, dq, dk, dv, d_o, scratch, scale, b, h, s, t, d, causal);
    if (!status) status = cudaMemcpy(o.data(), d_o, o.size() * sizeof(__half), cudaMemcpyDeviceToHost);
    double worst = 0;
    for (long long row = 0; !status && row < b * h * s; ++row) {
      const long long head = row / s;
      std::vector<double> weights(t);
      double sum = 0;
      for (long long key = 0; key < t; ++key) {
        double dot = 0;
        for (long long i = 0; i < d; ++i) dot += number(q[row * d + i]) * number(k[(head * t + key) * d + i]);
        sum += weights[key] = exp(dot * scale);
      }
      for (long long i = 0; i < d; ++i) {
        double value = 0;
        for (long long key = 0; key < t; ++key) value += weights[key] / sum * number(v[(head * t + key) * d + i]);
        worst = fmax(worst, fabs(value - number(o[row * d + i])));
      }
    }
    const int chosen = attention_f16_chosen();
    report(status, worst, chosen, attention_f16_error(), status ? attention_f16_tuned_none : attention_f16_launcher::Extents_attention[chosen](b, h, s, t, d, causal));
    for (void *p : {(void *)dq, (void *)dk, (void *)dv, (void *)d_o, (void *)scratch}) cudaFree(p);
  }
}
