// Lane 0 clears, the lanes add, all read: each step behind a warp barrier.
//@ launch kernel grid 1 block 32
//@ arg y i32[32] output
//@ expect y = constant(32)
extern "C" __global__ void kernel(int* y) {
    __shared__ int sum;
    int t = threadIdx.x;
    if (t == 0) sum = 0;
    __syncwarp();
    atomicAdd(&sum, 1);
    __syncwarp();
    y[t] = sum;
}
