// The consumer waits on a flag that the producer sets one slot further.
//@ verdict deadlock
//@ launch kernel grid 1 block 64
//@ arg y i32[1] output
extern "C" __global__ void kernel(int* y) {
    __shared__ volatile int flags[2];
    int t = threadIdx.x;
    if (t < 2) flags[t] = 0;
    __syncthreads();
    if (t == 0) {
        flags[1] = 1;
    } else if (t == 32) {
        while (flags[0] == 0) { // HAZARD
        }
        y[0] = 1;
    }
}
