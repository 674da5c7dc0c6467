// Blocks draw tickets in the order in which they come, and each writes the row of its ticket.
//@ launch kernel grid 7 block 32
//@ arg x i32[224] input arange
//@ arg ticket i32[1] inout zeros
//@ arg y i32[224] output
//@ expect y = copy(x)
extern "C" __global__ void kernel(const int* x, int* ticket, int* y) {
    __shared__ int mine;
    if (threadIdx.x == 0) mine = atomicAdd(ticket, 1);
    __syncthreads();
    y[mine * 32 + threadIdx.x] = x[mine * 32 + threadIdx.x];
}
