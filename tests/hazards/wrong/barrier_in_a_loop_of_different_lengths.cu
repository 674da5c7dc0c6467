// Warp 0 makes one more trip around the loop, and waits at a barrier that warp 1 never comes to.
//@ verdict barrier_divergence|deadlock
//@ launch kernel grid 1 block 64
//@ arg trips i32[2] input arange
//@ arg y i32[64] output
extern "C" __global__ void kernel(const int* trips, int* y) {
    int t = threadIdx.x, n = 2 + trips[t / 32], sum = 0;
    for (int i = 0; i < n; ++i) {
        sum += i;
        asm volatile("bar.sync 3, 64;" ::: "memory"); // HAZARD
    }
    y[t] = sum;
}
