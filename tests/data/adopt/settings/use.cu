#include <cstdio>
#include <string>
#include "config.h"
#include "unrelated.h"
#define TWICE 2
#ifdef PARTS_FAST
#define FACTOR TWICE
#else
#define SLOW 1
#endif
#define LIMIT 3
#define SLOW 2
#undef SLOW
#include "parts.h"

__global__ void scale_both(float* y, const float* x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = of_both(x[i]) + Both::of(1);
}

int main() {
    int n = 4096;
    float *x, *y;
    cudaMalloc(&x, n * sizeof(float));
    cudaMalloc(&y, n * sizeof(float));
    scale_both<<<(n + 255) / 256, 256>>>(y, x, n);
    printf("%s %d\n", shown().c_str(), cudaDeviceSynchronize());
}
