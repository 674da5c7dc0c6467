// Each half of the warp adds up by itself, under its own mask.
//@ launch kernel grid 1 block 32
//@ arg x i32[32] input arange
//@ arg y i32[2] output
//@ expect y = block_sum(x, 16)
extern "C" __global__ void kernel(const int* x, int* y) {
    int t = threadIdx.x, v = x[t];
    unsigned mask = t < 16 ? 0x0000ffffu : 0xffff0000u;
    for (int d = 8; d > 0; d /= 2) v += __shfl_xor_sync(mask, v, d);
    if ((t & 15) == 0) y[t / 16] = v;
}
