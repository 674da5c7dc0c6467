// Blocks take pieces of work as they come: who does what is open, what comes out is not.
//@ launch kernel grid 6 block 32
//@ arg x i32[640] input arange
//@ arg next i32[1] inout zeros
//@ arg y i32[640] output
//@ expect y = copy(x)
extern "C" __global__ void kernel(const int* x, int* next, int* y) {
    __shared__ int piece;
    int t = threadIdx.x;
    while (true) {
        if (t == 0) piece = atomicAdd(next, 1);
        __syncthreads();
        int mine = piece;
        __syncthreads();
        if (mine >= 20) return;
        y[mine * 32 + t] = x[mine * 32 + t];
    }
}
