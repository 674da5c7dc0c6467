// A scan by shuffles among the lanes that __activemask names in a ragged last warp.
//@ launch kernel grid 1 block 64
//@ arg x i32[45] input mod 6
//@ arg y i32[45] output
//@ expect y = prefix_sum(x)
extern "C" __global__ void kernel(const int* x, int* y) {
    __shared__ int totals[2];
    int t = threadIdx.x, lane = t % 32, v = 0;
    if (t < 45) {
        unsigned mask = t < 32 ? 0xffffffffu : 0x1fffu;
        v = x[t];
        for (int d = 1; d < 32; d *= 2) {
            int u = __shfl_up_sync(mask, v, d);
            if (lane >= d) v += u;
        }
        if (lane == 31 || t == 44) totals[t / 32] = v;
    }
    __syncthreads();
    if (t < 45) y[t] = v + (t >= 32 ? totals[0] : 0);
}
