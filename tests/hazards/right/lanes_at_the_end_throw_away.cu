// A sum by shuffles down in half a warp: the upper lanes take values from outside and nobody uses them.
//@ launch kernel grid 1 block 32
//@ arg x i32[32] input arange
//@ arg y i32[1] output
//@ expect y = constant(120)
extern "C" __global__ void kernel(const int* x, int* y) {
    int t = threadIdx.x, v = x[t];
    if (t < 16) {
        for (int d = 8; d > 0; d /= 2) v += __shfl_down_sync(0x0000ffffu, v, d);
        if (t == 0) y[0] = v;
    }
}
