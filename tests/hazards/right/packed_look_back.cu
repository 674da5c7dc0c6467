// A chained scan whose flag and value travel in one relaxed 64-bit word, which needs no fence.
//@ launch kernel grid 5 block 32
//@ arg x i32[160] input mod 9
//@ arg state u64[5] inout zeros
//@ arg y i32[160] output
//@ expect y = prefix_sum(x)
extern "C" __global__ void kernel(const int* x, unsigned long long* state, int* y) {
    int lane = threadIdx.x, b = blockIdx.x, v = x[b * 32 + lane], before = 0;
    for (int d = 1; d < 32; d *= 2) {
        int u = __shfl_up_sync(0xffffffffu, v, d);
        if (lane >= d) v += u;
    }
    if (lane == 31) {
        if (b > 0) {
            unsigned long long word = 0;
            while (word >> 32 == 0) asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(word) : "l"(state + b - 1) : "memory");
            before = (int)word;
        }
        unsigned long long word = (1ull << 32) | (unsigned)(before + v);
        asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(state + b), "l"(word) : "memory");
    }
    before = __shfl_sync(0xffffffffu, before, 31);
    y[b * 32 + lane] = before + v;
}
