// Persistent blocks take tiles from a queue: the ticket of one thread goes to its block through shared memory.
//@ launch kernel grid 3 block 32
//@ arg next i32[1] inout zeros
//@ arg x i32[352] input arange
//@ arg y i32[352] output
//@ expect y = scale(x, 2)
extern "C" __global__ void kernel(int* next, const int* x, int* y) {
    __shared__ int tile;
    while (true) {
        if (threadIdx.x == 0) tile = atomicAdd(next, 1);
        __syncthreads();
        int i = tile;
        __syncthreads();
        if (i >= 11) break;
        y[i * 32 + threadIdx.x] = 2 * x[i * 32 + threadIdx.x];
    }
}
