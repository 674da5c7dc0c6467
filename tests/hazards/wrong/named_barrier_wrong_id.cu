// The producer arrives at barrier 1, the consumer waits at barrier 2.
//@ verdict deadlock|barrier_divergence
//@ launch kernel grid 1 block 64
//@ arg x i32[32] input arange
//@ arg y i32[32] output
extern "C" __global__ void kernel(const int* x, int* y) {
    __shared__ int s[32];
    int t = threadIdx.x;
    if (t < 32) {
        s[t] = x[t];
        asm volatile("bar.arrive 1, 64;" ::: "memory");
    } else {
        asm volatile("bar.sync 2, 64;" ::: "memory"); // HAZARD
        y[t - 32] = s[63 - t];
    }
}
