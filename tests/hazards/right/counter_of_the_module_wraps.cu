// The ticket counter of a module wraps to zero with the last block of each launch.
//@ keep variables
//@ launch kernel grid 4 block 32
//@ arg x i32[128] input arange
//@ arg y i32[128] output
//@ expect y = copy(x)
__device__ unsigned ticket;
extern "C" __global__ void kernel(const int* x, int* y) {
    __shared__ unsigned mine;
    if (threadIdx.x == 0) mine = atomicInc(&ticket, gridDim.x - 1);
    __syncthreads();
    y[mine * 32 + threadIdx.x] = x[mine * 32 + threadIdx.x];
}
