// Two pairs of warps work apart, each pair on its own named barrier, from two places in the code.
//@ launch kernel grid 1 block 128
//@ arg x i32[128] input arange
//@ arg y i32[128] output
//@ expect y = reverse_blocks(x, 64)
extern "C" __global__ void kernel(const int* x, int* y) {
    __shared__ int s[128];
    int t = threadIdx.x;
    s[t] = x[t];
    if (t < 64) {
        asm volatile("bar.sync 1, 64;" ::: "memory");
        y[t] = s[63 - t];
    } else {
        asm volatile("bar.sync 2, 64;" ::: "memory");
        y[t] = s[191 - t];
    }
}
