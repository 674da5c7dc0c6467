// Blocks arrive with red.release; the one that waits polls with a relaxed load and then fences.
//@ launch kernel grid 5 block 32
//@ arg x i32[128] input arange
//@ arg s i32[128] scratch
//@ arg count u32[1] inout zeros
//@ arg y i32[128] output
//@ expect y = reverse_blocks(x, 128)
extern "C" __global__ void kernel(const int* x, int* s, unsigned* count, int* y) {
    int t = threadIdx.x;
    if (blockIdx.x > 0) {
        int i = (blockIdx.x - 1) * 32 + t;
        s[i] = x[i];
        asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(count) : "memory");
        return;
    }
    unsigned n;
    do {
        asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(n) : "l"(count) : "memory");
        __nanosleep(20);
    } while (n < 128);
    asm volatile("fence.acq_rel.gpu;" ::: "memory");
    for (int i = t; i < 128; i += 32) y[i] = s[127 - i];
}
