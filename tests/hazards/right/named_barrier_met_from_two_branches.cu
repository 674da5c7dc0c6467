// Producer and consumer meet at one named barrier from two instructions, which counted barriers allow.
//@ launch kernel grid 1 block 64
//@ arg x i32[32] input arange
//@ arg y i32[32] output
//@ expect y = reverse_blocks(x, 32)
extern "C" __global__ void kernel(const int* x, int* y) {
    __shared__ int s[32];
    int t = threadIdx.x;
    if (t < 32) {
        s[t] = x[t];
        asm volatile("barrier.sync 1, 64;" ::: "memory");
    } else {
        asm volatile("barrier.sync 1, 64;" ::: "memory");
        y[t - 32] = s[63 - t];
    }
}
