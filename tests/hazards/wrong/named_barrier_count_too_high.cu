// The named barrier counts 96 threads, the block has 64.
//@ verdict deadlock|barrier_divergence
//@ launch kernel grid 1 block 64
//@ arg x i32[64] input arange
//@ arg y i32[64] output
extern "C" __global__ void kernel(const int* x, int* y) {
    __shared__ int s[64];
    int t = threadIdx.x;
    s[t] = x[t];
    asm volatile("bar.sync 1, 96;" ::: "memory"); // HAZARD
    y[t] = s[63 - t];
}
