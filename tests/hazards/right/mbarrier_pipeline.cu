// Producer warp and consumer warp over a ring of three stages with full and empty mbarriers and parities.
//@ arch sm_90
//@ launch kernel grid 1 block 64
//@ arg x i32[320] input arange
//@ arg y i32[320] output
//@ expect y = reverse_blocks(x, 32)
__device__ void wait(unsigned bar, unsigned parity) {
    asm volatile(
        "{\n .reg .pred p;\nL: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n @!p bra L;\n}" ::"r"(bar), "r"(parity) : "memory");
}
__device__ void arrive(unsigned bar) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(bar) : "memory");
}
extern "C" __global__ void kernel(const int* x, int* y) {
    __shared__ int s[3][32];
    __shared__ __align__(8) unsigned long long full[3], empty[3];
    int t = threadIdx.x;
    if (t == 0) {
        for (int i = 0; i < 3; ++i) {
            asm volatile("mbarrier.init.shared::cta.b64 [%0], 32;" ::"r"((unsigned)__cvta_generic_to_shared(&full[i])) : "memory");
            asm volatile("mbarrier.init.shared::cta.b64 [%0], 32;" ::"r"((unsigned)__cvta_generic_to_shared(&empty[i])) : "memory");
        }
    }
    __syncthreads();
    if (t < 32) {
        for (int i = 0; i < 10; ++i) {
            int k = i % 3, round = i / 3;
            wait((unsigned)__cvta_generic_to_shared(&empty[k]), (round & 1) ^ 1);
            s[k][t] = x[i * 32 + t];
            arrive((unsigned)__cvta_generic_to_shared(&full[k]));
        }
    } else {
        for (int i = 0; i < 10; ++i) {
            int k = i % 3, round = i / 3;
            wait((unsigned)__cvta_generic_to_shared(&full[k]), round & 1);
            y[i * 32 + t - 32] = s[k][63 - t];
            arrive((unsigned)__cvta_generic_to_shared(&empty[k]));
        }
    }
}
