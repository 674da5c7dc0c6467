// The barrier counts one warp, so the consumer does not wait for the producer.
//@ verdict race
//@ launch kernel grid 1 block 64
//@ arg x i32[32] input arange
//@ arg y i32[32] output
extern "C" __global__ void kernel(const int* x, int* y) {
    __shared__ int s[32];
    int t = threadIdx.x;
    if (t < 32) {
        s[t] = x[t]; // HAZARD
    } else {
        asm volatile("bar.sync 1, 32;" ::: "memory");
        int v = s[63 - t]; // HAZARD
        y[t - 32] = v;
    }
}
