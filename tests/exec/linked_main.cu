// One of two files with relocatable device code: each has text and a variable of its own name, and uses the other's.
#include <cstdio>
#include <cuda_runtime.h>

extern __device__ int table[4];
extern __constant__ int offset;
extern __device__ int reverse(int *row, bool ordered);
static __device__ int own = 1;

__global__ void kernel(int *to, bool ordered) {
  __shared__ int row[64];
  row[threadIdx.x] = threadIdx.x;
  to[threadIdx.x] = reverse(row, ordered) + table[threadIdx.x & 3] + offset + own;
  if (threadIdx.x == 0) printf("from main\n");
}

void set_offset(int value);

int main(int, char **arguments) {
  int *to;
  cudaMallocManaged(&to, 256);
  set_offset(1000);
  kernel<<<1, 64>>>(to, arguments[1] != nullptr);
  printf("%d ", cudaDeviceSynchronize());
  printf("%d\n", to[63]);
}
