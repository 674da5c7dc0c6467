// The two halves of a warp synchronise on their own masks in different branches.
//@ launch kernel grid 1 block 32
//@ arg x i32[32] input arange
//@ arg y i32[32] output
//@ expect y = reverse_blocks(x, 16)
extern "C" __global__ void kernel(const int* x, int* y) {
    __shared__ int s[32];
    int t = threadIdx.x;
    if (t < 16) {
        s[t] = x[t];
        __syncwarp(0x0000ffffu);
        y[t] = s[15 - t];
    } else {
        s[t] = x[t];
        __syncwarp(0xffff0000u);
        y[t] = s[47 - t];
    }
}
