// nvcc -ptx -arch=sm_80 -rdc=true device_launches.cu
__global__ void child(char first, double *second, short third) {
  second[threadIdx.x] = first + third;
}

// Each block launches a grid with one more block than the one before; the last has none.
__global__ void parent(double *x, int *errors) {
  int b = blockIdx.x;
  if (threadIdx.x != 5) return;
  int blocks = b + 1 < gridDim.x ? b + 1 : 0;
  child<<<dim3(blocks, 2, 1), dim3(3, 1, 2), 64 * b, b == 1 ? cudaStreamTailLaunch : 0>>>(b, x, -2);
  errors[b] = cudaPeekAtLastError();
}
