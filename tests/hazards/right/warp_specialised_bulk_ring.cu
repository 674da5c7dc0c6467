// One warp fills a ring of stages with bulk copies, two warps consume them; full and empty mbarriers.
//@ arch sm_90
//@ launch kernel grid 1 block 96
//@ arg x i32[640] input arange
//@ arg y i32[640] output
//@ expect y = reverse_blocks(x, 64)
__device__ void wait(unsigned bar, unsigned parity) {
    asm volatile("{\n .reg .pred p;\nL: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n @!p bra L;\n}" ::"r"(bar), "r"(parity) : "memory");
}
extern "C" __global__ void kernel(const int* x, int* y) {
    __shared__ __align__(128) int s[3][64];
    __shared__ __align__(8) unsigned long long full[3], empty[3];
    int t = threadIdx.x;
    if (t == 0) {
        for (int i = 0; i < 3; ++i) {
            asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"((unsigned)__cvta_generic_to_shared(&full[i])) : "memory");
            asm volatile("mbarrier.init.shared::cta.b64 [%0], 2;" ::"r"((unsigned)__cvta_generic_to_shared(&empty[i])) : "memory");
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    }
    __syncthreads();
    if (t < 32) {
        for (int i = 0; i < 10 && t == 0; ++i) {
            int k = i % 3;
            unsigned bar = (unsigned)__cvta_generic_to_shared(&full[k]);
            wait((unsigned)__cvta_generic_to_shared(&empty[k]), (i / 3 & 1) ^ 1);
            asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 256;" ::"r"(bar) : "memory");
            asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 256, [%2];" ::"r"((unsigned)__cvta_generic_to_shared(s[k])), "l"(x + i * 64), "r"(bar) : "memory");
        }
        return;
    }
    for (int i = 0; i < 10; ++i) {
        int k = i % 3;
        wait((unsigned)__cvta_generic_to_shared(&full[k]), i / 3 & 1);
        y[i * 64 + t - 32] = s[k][95 - t];
        __syncwarp();
        if (t % 32 == 0) asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"((unsigned)__cvta_generic_to_shared(&empty[k])) : "memory");
    }
}
