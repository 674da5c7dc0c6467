// As in shared memory, but each block has its counter in global memory, and no fence is needed.
//@ launch kernel grid 4 block 64
//@ arg count i32[4] scratch
//@ arg y i32[256] output
//@ expect y = constant(64)
extern "C" __global__ void kernel(int* count, int* y) {
    int t = threadIdx.x, b = blockIdx.x;
    if (t == 0) count[b] = 0;
    __syncthreads();
    atomicAdd(&count[b], 1);
    __syncthreads();
    y[b * 64 + t] = count[b];
}
