// Scalar code: integer hashing, float polynomial, a little memory.
extern "C" __global__ void scalar(const float* x, float* y, int n, int rounds) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float a = x[i], b = a * 0.5f, c = 1.0f - a; unsigned h = i;
#pragma unroll 4
  for (int r = 0; r < rounds; r++) {
    a = a * b + c; b = b + a * 0.25f; c = c - b * 0.125f;
    h ^= h << 13; h ^= h >> 17; h ^= h << 5; h += 0x9e3779b9u;
    if (h & 0x40000000u) a = -a;
    a = fminf(fmaxf(a, -1.0f), 1.0f);
  }
  y[i] = a + b + c + (float)(h & 1023u);
}
