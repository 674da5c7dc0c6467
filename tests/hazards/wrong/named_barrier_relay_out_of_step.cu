// A relay of warps over named barriers: the second warp waits at the first one's barrier, not its own.
//@ verdict race
//@ launch kernel grid 1 block 96
//@ arg x i32[32] input arange
//@ arg y i32[32] output
extern "C" __global__ void kernel(const int* x, int* y) {
    __shared__ int s[32];
    int w = threadIdx.x / 32, lane = threadIdx.x % 32;
    if (w == 0) {
        s[lane] = x[lane];
        asm volatile("bar.arrive 1, 96;" ::: "memory");
    } else {
        asm volatile("bar.sync 1, 96;" ::: "memory");
        int v = s[31 - lane]; // CONFLICT
        if (w == 1) s[31 - lane] = v + 1; // HAZARD
        else y[lane] = v;
    }
}
