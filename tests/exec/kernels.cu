// Kernels of the tests of `tuner exec`. kernels.ptx is the result of
//   nvcc -arch=sm_80 -lineinfo -ptx kernels.cu
#include <cstdio>
#include <cassert>

__device__ int counter = 40;
__constant__ int weights[4] = {1, 2, 3, 4};

extern "C" __global__ void add(const float *a, const float *b, float *c, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) c[i] = a[i] + b[i];
}

extern "C" __global__ void scale(float *x, float factor, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] *= factor;
}

extern "C" __global__ void out_of_bounds(float *x, int n) { x[blockIdx.x * blockDim.x + threadIdx.x + n] = 1; }

extern "C" __global__ void race(float *x) {
    __shared__ float s[64];
    s[threadIdx.x] = threadIdx.x;
    x[threadIdx.x] = s[63 - threadIdx.x];
}

extern "C" __global__ void count(int *out) {
    if (threadIdx.x == 0) counter += 2;
    out[threadIdx.x] = weights[threadIdx.x % 4];
}

extern "C" __global__ void say(int n) {
    if (threadIdx.x < 2) printf("thread %d of %d: %.2f %s\n", threadIdx.x, n, 0.5, "text");
}

extern "C" __global__ void check(int n) { assert(threadIdx.x < n); }
