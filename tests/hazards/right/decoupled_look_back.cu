// A chained scan: each block waits for the inclusive prefix of the block before it.
//@ launch kernel grid 5 block 32
//@ arg x i32[160] input mod 9
//@ arg prefix i32[5] scratch
//@ arg state i32[5] inout zeros
//@ arg y i32[160] output
//@ expect y = prefix_sum(x)
extern "C" __global__ void kernel(const int* x, int* prefix, int* state, int* y) {
    int lane = threadIdx.x, b = blockIdx.x, v = x[b * 32 + lane], before = 0;
    for (int d = 1; d < 32; d *= 2) {
        int u = __shfl_up_sync(0xffffffffu, v, d);
        if (lane >= d) v += u;
    }
    if (lane == 31) {
        if (b > 0) {
            while (atomicOr(&state[b - 1], 0) == 0) {
            }
            __threadfence();
            before = prefix[b - 1];
        }
        prefix[b] = before + v;
        __threadfence();
        atomicExch(&state[b], 1);
    }
    before = __shfl_sync(0xffffffffu, before, 31);
    y[b * 32 + lane] = before + v;
}
