// Warp-specialised hand-over through two named barriers: full (1) and empty (2).
//@ launch kernel grid 1 block 64
//@ arg x i32[256] input arange
//@ arg y i32[256] output
//@ expect y = reverse_blocks(x, 32)
extern "C" __global__ void kernel(const int* x, int* y) {
    __shared__ int s[32];
    int t = threadIdx.x;
    if (t < 32) {
        for (int i = 0; i < 8; ++i) {
            if (i > 0) asm volatile("bar.sync 2, 64;" ::: "memory");
            s[t] = x[i * 32 + t];
            asm volatile("bar.arrive 1, 64;" ::: "memory");
        }
    } else {
        for (int i = 0; i < 8; ++i) {
            asm volatile("bar.sync 1, 64;" ::: "memory");
            y[i * 32 + t - 32] = s[63 - t];
            if (i < 7) asm volatile("bar.arrive 2, 64;" ::: "memory");
        }
    }
}
