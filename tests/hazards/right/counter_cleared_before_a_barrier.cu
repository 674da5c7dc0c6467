// A counter in shared memory: a plain store, a barrier, atomics of all, a barrier, plain reads.
//@ launch kernel grid 2 block 64
//@ arg y i32[128] output
//@ expect y = constant(64)
extern "C" __global__ void kernel(int* y) {
    __shared__ int sum;
    int t = threadIdx.x;
    if (t == 0) {
        sum = 0;
        atomicAdd(&sum, 1);
        atomicAdd(&sum, -1);
    }
    __syncthreads();
    atomicAdd(&sum, 1);
    __syncthreads();
    y[blockIdx.x * 64 + t] = sum;
}
