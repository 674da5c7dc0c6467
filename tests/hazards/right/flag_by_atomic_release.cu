// cuda::atomic style: red.release on the producer's side, ld.acquire on the other, in shared memory.
//@ launch kernel grid 1 block 64
//@ arg x i32[32] input arange
//@ arg y i32[32] output
//@ expect y = reverse_blocks(x, 32)
extern "C" __global__ void kernel(const int* x, int* y) {
    __shared__ int s[32];
    __shared__ int count;
    int t = threadIdx.x;
    unsigned c = (unsigned)__cvta_generic_to_shared(&count);
    if (t == 0) count = 0;
    __syncthreads();
    if (t < 32) {
        s[t] = x[t];
        asm volatile("red.release.cta.shared.add.s32 [%0], 1;" ::"r"(c) : "memory");
    } else {
        int seen;
        do {
            asm volatile("ld.acquire.cta.shared.s32 %0, [%1];" : "=r"(seen) : "r"(c) : "memory");
        } while (seen != 32);
        y[t - 32] = s[63 - t];
    }
}
