// Blocks and warps add to counters that others read as volatile: both accesses are strong.
//@ launch kernel grid 8 block 64
//@ arg count i32[1] inout zeros
//@ arg y i32[8] output
//@ expect y = constant(1)
extern "C" __global__ void kernel(int* count, int* y) {
    __shared__ int sum;
    int t = threadIdx.x;
    if (t == 0) sum = 0;
    __syncthreads();
    if (t < 32) {
        atomicAdd(&sum, 1);
        atomicAdd(count, 1);
    } else if (t == 32) {
        y[blockIdx.x] = *(volatile int*)count >= 0 && *(volatile int*)&sum >= 0;
    }
}
