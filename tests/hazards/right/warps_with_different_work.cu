// Warp 0 works on its own for a while; the barrier at the end is met by all from one place.
//@ launch kernel grid 1 block 128
//@ arg x i32[128] input arange
//@ arg y i32[128] output
//@ expect y = warp_zero_sums(x)
extern "C" __global__ void kernel(const int* x, int* y) {
    __shared__ int total;
    int t = threadIdx.x;
    if (t < 32) {
        int v = 0;
        for (int i = t; i < 128; i += 32) v += x[i];
        v = __reduce_add_sync(0xffffffffu, v);
        if (t == 0) total = v;
    }
    __syncthreads();
    y[t] = total - x[t];
}
