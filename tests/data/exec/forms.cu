#include <cstdio>
#include <cstdlib>
#include <cuda_fp16.h>
struct View { float* data; int rows; float2 scale; const int* index; unsigned char flags[3]; };
struct Pt { float x, y; int k; };
__global__ void by_struct(View v, Pt* pts, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) { v.data[i] = v.scale.x * v.rows + v.scale.y * v.index[i] + v.flags[1]; pts[i].x = v.data[i]; pts[i].k += i; }
}
__global__ void alias(const float* a, float* b, int n) { int i = blockIdx.x * 64 + threadIdx.x; if (i < n) b[i] = a[i] * 2; }
__global__ void parts(const float* a, float* b, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) b[i] = a[i] + 1; }
__global__ void maybe(const float* bias, float* y, int n) { int i = threadIdx.x; if (i < n) y[i] = bias ? bias[i] : 1; }
__global__ void pp(float** rows, int n) { int i = threadIdx.x; if (i < n) rows[0][i] = i; }
template <typename T, int TILE> __global__ void transpose(const T* in, T* out, int w, int h) {
  __shared__ T t[TILE][TILE + 1];
  int x = blockIdx.x * TILE + threadIdx.x, y = blockIdx.y * TILE + threadIdx.y;
  if (x < w && y < h) t[threadIdx.y][threadIdx.x] = in[y * w + x];
  __syncthreads();
  x = blockIdx.y * TILE + threadIdx.x; y = blockIdx.x * TILE + threadIdx.y;
  if (x < h && y < w) out[y * h + x] = t[threadIdx.x][threadIdx.y];
}
namespace { __global__ void rsum(const float* x, float* y, int n) {
  extern __shared__ float s[]; int i = blockIdx.x * blockDim.x + threadIdx.x;
  s[threadIdx.x] = i < n ? x[i] : 0; __syncthreads();
  for (int k = blockDim.x / 2; k; k /= 2) { if (threadIdx.x < k) s[threadIdx.x] += s[threadIdx.x + k]; __syncthreads(); }
  if (!threadIdx.x) y[blockIdx.x] = s[0];
} }
int main() {
  int n = 1000; float *a, *b; int* idx; Pt* p;
  cudaMalloc(&a, n * 8); cudaMalloc(&b, n * 4); cudaMalloc(&idx, n * 4); cudaMalloc(&p, n * sizeof(Pt));
  float* h = (float*)malloc(n * 8); int* hi = (int*)malloc(n * 4); for (int i = 0; i < 2 * n; i++) h[i] = i * .25f; for (int i = 0; i < n; i++) hi[i] = i % 7;
  cudaMemcpy(a, h, n * 8, cudaMemcpyHostToDevice); cudaMemcpy(idx, hi, n * 4, cudaMemcpyHostToDevice); cudaMemset(p, 0, n * sizeof(Pt));
  View v{b, 5, {1.5f, -2.f}, idx, {1, 2, 3}};
  by_struct<<<(n + 127) / 128, 128>>>(v, p, n);
  alias<<<(n + 63) / 64, 64>>>(b, b, n);
  parts<<<(n + 127) / 128, 128>>>(a, a + n, n);
  maybe<<<1, 128>>>(nullptr, b, 100);
  float** rows; cudaMalloc(&rows, 8); cudaMemcpy(rows, &b, 8, cudaMemcpyHostToDevice);
  pp<<<1, 128>>>(rows, 100);
  float* o; cudaMalloc(&o, n * 4); dim3 t(16, 16), g((40 + 15) / 16, (25 + 15) / 16);
  transpose<float, 16><<<g, t>>>(a, o, 40, 25);
  rsum<<<(n + 255) / 256, 256, 256 * sizeof(float)>>>(a, o, n);
  printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
}
