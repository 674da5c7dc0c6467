// Blocks count in the row of their multiprocessor, by atomics and below %nsmid; only the sum counts.
//@ launch kernel grid 40 block 64
//@ launch finish grid 1 block 1
//@ arg work i32[256] inout zeros
//@ arg y i32[1] output
//@ expect y = constant(2560)
extern "C" __global__ void kernel(int* work, int* y) {
    unsigned sm, all;
    asm volatile("mov.u32 %0, %%smid;\nmov.u32 %1, %%nsmid;" : "=r"(sm), "=r"(all));
    if (sm < all && sm < 256) atomicAdd(&work[sm], 1);
}
extern "C" __global__ void finish(int* work, int* y) {
    int sum = 0;
    for (int i = 0; i < 256; ++i) sum += work[i];
    y[0] = sum;
}
