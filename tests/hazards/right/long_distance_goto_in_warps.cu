// Threads leave a loop at different trips and meet again at a barrier behind it.
//@ launch kernel grid 1 block 64
//@ arg x i32[64] input arange
//@ arg y i32[64] output
//@ expect y = reverse_blocks(x, 64)
extern "C" __global__ void kernel(const int* x, int* y) {
    __shared__ int s[64];
    int t = threadIdx.x, v = 0;
    for (int i = 0; i < 64; ++i) {
        v += 1;
        if (i == x[t]) goto out;
    }
    v = -1;
out:
    s[t] = v - 1;
    __syncthreads();
    y[t] = s[63 - t];
}
