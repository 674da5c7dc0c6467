// Recursion to a depth, with a limit of the stack.
#include <cstdio>
#include <cstdlib>
__device__ __noinline__ int deep(int n) {
    volatile int pad[16];
    pad[n & 15] = n;
    return n ? deep(n - 1) + pad[n & 15] : 0;
}
__global__ void sum(int n, int *to) { *to = deep(n); }
int main(int, char **arguments) {
    int *x, h = 0;
    cudaMalloc(&x, sizeof h);
    if (arguments[2]) printf("limit %d\n", cudaDeviceSetLimit(cudaLimitStackSize, atol(arguments[2])));
    sum<<<1, 1>>>(atoi(arguments[1]), x);
    printf("%d, ", cudaDeviceSynchronize());
    cudaMemcpy(&h, x, sizeof h, cudaMemcpyDeviceToHost);
    printf("%d\n", h);
}
