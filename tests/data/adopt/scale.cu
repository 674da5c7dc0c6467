// A whole program, as beginners write one.
#include <cuda_runtime.h>
#include <iostream>
#include <stdio.h>
#include <stdlib.h>
#include <vector>

#define CHECK(call)                                              \
  do {                                                           \
    cudaError_t status = (call);                                 \
    if (status != cudaSuccess) {                                 \
      printf("%s\n", cudaGetErrorString(status));                \
      exit(EXIT_FAILURE);                                        \
    }                                                            \
  } while (0)

__global__ void scale(const float *x, float *y, int n, float factor) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = factor * x[i];
}

int main() {
  int n = 100000;
  size_t bytes = n * sizeof(float);
  std::vector<float> host(n, 1.0f);
  float *d_x, *d_y;
  CHECK(cudaMalloc(&d_x, bytes));
  CHECK(cudaMalloc(&d_y, bytes));
  CHECK(cudaMemcpy(d_x, host.data(), bytes, cudaMemcpyHostToDevice));
  int threads = 256;
  int blocks = (n + threads - 1) / threads;
  scale<<<blocks, threads>>>(d_x, d_y, n, 3.0f);
  CHECK(cudaDeviceSynchronize());
  std::cout << host[0] << std::endl;
  return 0;
}
