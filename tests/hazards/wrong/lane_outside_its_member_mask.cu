// Lanes call a warp barrier with a mask that does not name them.
//@ verdict crashed|barrier_divergence|deadlock
//@ also race
//@ launch kernel grid 1 block 32
//@ arg y i32[32] output
extern "C" __global__ void kernel(int* y) {
    int t = threadIdx.x;
    if (t >= 16) __syncwarp(0x0000ffffu); // HAZARD
    y[t] = t;
}
