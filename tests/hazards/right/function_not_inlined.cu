// Device functions that stay calls, one of them with a pointer into shared memory.
//@ launch kernel grid 2 block 64
//@ arg x i32[128] input arange
//@ arg y i32[128] output
//@ expect y = mapped(x, square_plus_one)
__device__ __noinline__ int square(int v) {
    return v * v;
}
__device__ __noinline__ void put(int* where, int v) {
    *where = square(v) + 1;
}
extern "C" __global__ void kernel(const int* x, int* y) {
    __shared__ int s[64];
    int t = threadIdx.x, i = blockIdx.x * 64 + t;
    put(&s[63 - t], x[i]);
    __syncthreads();
    y[i] = s[63 - t];
}
