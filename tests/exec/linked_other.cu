// The other of the files with relocatable device code.
#include <cstdio>
#include <cuda_runtime.h>

__device__ int table[4] = {10, 20, 30, 40};
__constant__ int offset;
static __device__ int own = 100;

__device__ int reverse(int *row, bool ordered) {
  if (threadIdx.x == 0) printf("from other\n");
  if (ordered) __syncthreads();
  return row[63 - threadIdx.x] + own;
}

void set_offset(int value) { cudaMemcpyToSymbol(offset, &value, sizeof value); }
