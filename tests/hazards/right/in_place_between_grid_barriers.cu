// Every block reads the same words, then after a barrier of the grid each overwrites its own.
//@ launch kernel grid 4 block 32
//@ arg x i32[128] inout arange
//@ arg count u32[1] inout zeros
//@ expect x = rotate(x, 32)
extern "C" __global__ void kernel(int* x, unsigned* count) {
    int i = blockIdx.x * 32 + threadIdx.x, sum = 0;
    for (int k = 0; k < 128; ++k) sum += x[k] == k;
    int next = x[(i + 32) % 128] + sum - 128;
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        atomicAdd(count, 1);
        while (atomicAdd(count, 0) < gridDim.x) {}
        __threadfence();
    }
    __syncthreads();
    x[i] = next;
}
