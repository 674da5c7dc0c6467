// Half of the warp leaves, the other half waits for all 32 lanes.
//@ verdict barrier_divergence|deadlock
//@ launch kernel grid 1 block 32
//@ arg x i32[32] input arange
//@ arg y i32[32] output
extern "C" __global__ void kernel(const int* x, int* y) {
    __shared__ int s[32];
    int t = threadIdx.x;
    s[t] = x[t];
    y[t] = x[t];
    if (t >= 16) return;
    __syncwarp(0xffffffffu); // HAZARD
    y[t] = s[t ^ 1];
}
