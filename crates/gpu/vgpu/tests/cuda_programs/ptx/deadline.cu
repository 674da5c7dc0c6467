// nvcc -arch=sm_80 -std=c++17 -lineinfo -ptx deadline.cu
__global__ void shorts(int *out) { if (threadIdx.x == 0 && blockIdx.x == 0) out[0] = 1; }
__global__ void longs(int *out) { int x = threadIdx.x; for (int i = 0; i < 1 << 20; i++) x = x * 1664525 + (x >> 3); if (x == 1) out[0] = 1; }
