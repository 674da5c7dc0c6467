// Block 0 sends rows to block 1 through a queue of two slots; both counters are release and acquire.
//@ launch kernel grid 2 block 32
//@ arg x i32[320] input arange
//@ arg slots i32[64] scratch
//@ arg counters i32[2] inout zeros
//@ arg y i32[320] output
//@ expect y = reverse_blocks(x, 32)
__device__ int acquire(int* p) {
    int v;
    asm volatile("ld.acquire.gpu.global.s32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
    return v;
}
__device__ void release(int* p, int v) { asm volatile("st.release.gpu.global.s32 [%0], %1;" ::"l"(p), "r"(v) : "memory"); }
extern "C" __global__ void kernel(const int* x, int* slots, int* counters, int* y) {
    int t = threadIdx.x;
    for (int i = 0; i < 10; ++i) {
        int* slot = slots + 32 * (i % 2);
        if (blockIdx.x == 0) {
            if (t == 0) while (i - acquire(&counters[1]) >= 2) {}
            __syncwarp();
            slot[t] = x[i * 32 + t];
            __syncwarp();
            if (t == 0) release(&counters[0], i + 1);
        } else {
            if (t == 0) while (acquire(&counters[0]) <= i) {}
            __syncwarp();
            y[i * 32 + t] = slot[31 - t];
            __syncwarp();
            if (t == 0) release(&counters[1], i + 1);
        }
    }
}
