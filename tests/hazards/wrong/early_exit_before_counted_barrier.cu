// Warp 1 leaves before a named barrier that counts on all 64 threads.
//@ verdict barrier_divergence|deadlock
//@ launch kernel grid 1 block 64
//@ arg x i32[64] input arange
//@ arg y i32[64] output
extern "C" __global__ void kernel(const int* x, int* y) {
    __shared__ int s[64];
    int t = threadIdx.x;
    s[t] = x[t];
    y[t] = 0;
    if (t >= 32) return;
    asm volatile("bar.sync 1, 64;" ::: "memory"); // HAZARD
    y[t] = s[t ^ 1];
}
