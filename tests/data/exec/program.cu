#include <cstdio>
#include <cstdlib>
#define BLOCK 128
__constant__ float bias;
__device__ int counter;
__global__ void saxpy(int n, float a, const float* x, float* y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i] + y[i] + bias;
  if (i == 0) atomicAdd(&counter, 1);
}
int main(int argc, char** argv) {
  int n = argc > 1 ? atoi(argv[1]) : 1000;
  float *x, *y, *h = (float*)malloc(n * 4);
  for (int i = 0; i < n; i++) h[i] = i * 0.5f;
  cudaMalloc(&x, n * 4); cudaMalloc(&y, n * 4);
  cudaMemcpy(x, h, n * 4, cudaMemcpyHostToDevice);
  cudaMemcpy(y, h, n * 4, cudaMemcpyHostToDevice);
  float b = 2; cudaMemcpyToSymbol(bias, &b, 4);
  saxpy<<<(n + BLOCK - 1) / BLOCK, BLOCK>>>(n, 3.0f, x, y);
  cudaMemcpy(h, y, n * 4, cudaMemcpyDeviceToHost);
  int bad = 0; for (int i = 0; i < n; i++) bad += h[i] != 3.0f * (i * 0.5f) + i * 0.5f + 2;
  printf("%s\n", bad ? "FAIL" : "PASS");
  return bad != 0;
}
