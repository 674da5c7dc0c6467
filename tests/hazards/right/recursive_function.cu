// A recursive function with its frames in local memory.
//@ launch kernel grid 1 block 32
//@ arg x i32[32] input mod 12
//@ arg y i32[32] output
//@ expect y = mapped(x, fibonacci)
__device__ __noinline__ int fibonacci(int n) {
    return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}
extern "C" __global__ void kernel(const int* x, int* y) {
    y[threadIdx.x] = fibonacci(x[threadIdx.x]);
}
