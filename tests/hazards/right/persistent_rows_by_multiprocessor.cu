// Blocks count in the row of their multiprocessor, below %nsmid; the last one adds the rows up and clears them.
//@ launch kernel grid 40 block 64
//@ arg work i32[256] inout zeros
//@ arg ticket i32[1] inout zeros
//@ arg y i32[1] output
//@ expect y = constant(2560)
extern "C" __global__ void kernel(int* work, unsigned* ticket, int* y) {
    __shared__ bool last;
    unsigned sm, all;
    asm volatile("mov.u32 %0, %%smid;\nmov.u32 %1, %%nsmid;" : "=r"(sm), "=r"(all));
    if (sm < all && sm < 256) atomicAdd(&work[sm], 1);
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) last = atomicInc(ticket, gridDim.x - 1) == gridDim.x - 1;
    __syncthreads();
    if (!last || threadIdx.x) return;
    __threadfence();
    int sum = 0;
    for (int i = 0; i < 256; ++i) sum += atomicExch(&work[i], 0);
    y[0] = sum;
}
