// Warp 0 clears a counter and adds to it; warp 1 adds without a barrier of the block.
//@ verdict race
//@ also uninitialized
//@ launch kernel grid 1 block 64
//@ arg y i32[1] output
extern "C" __global__ void kernel(int* y) {
    __shared__ int sum;
    int t = threadIdx.x;
    if (t == 0) {
        sum = 0; // HAZARD
        atomicAdd(&sum, 1);
    } else if (t == 32) {
        atomicAdd(&sum, 2); // HAZARD
    }
    __syncthreads();
    if (t == 0) y[0] = sum;
}
