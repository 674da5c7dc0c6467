// An atomic counts the blocks of all launches; after 64 launches the result is zero.
//@ verdict module_state
//@ keep variables
//@ launch kernel grid 2 block 32
//@ arg x i32[64] input arange
//@ arg y i32[64] output
static __device__ unsigned blocks;
extern "C" __global__ void kernel(const int* x, int* y) {
    __shared__ unsigned before;
    if (threadIdx.x == 0) before = atomicAdd(&blocks, 1u); // HAZARD
    __syncthreads();
    int i = blockIdx.x * 32 + threadIdx.x;
    y[i] = before < 128 ? x[i] : 0;
}
