// Bulk copies into a ring of two stages: expect_tx, parity waits, and a block barrier before a stage is reused.
//@ arch sm_90
//@ launch kernel grid 2 block 64
//@ arg x f32[1024] input arange
//@ arg y f32[1024] output
//@ expect y = reverse_blocks(x, 128)
extern "C" __global__ void kernel(const float* x, float* y) {
    __shared__ __align__(128) float s[2][128];
    __shared__ __align__(8) unsigned long long bars[2];
    int t = threadIdx.x;
    unsigned bar[2] = {(unsigned)__cvta_generic_to_shared(&bars[0]), (unsigned)__cvta_generic_to_shared(&bars[1])};
    const float* from = x + blockIdx.x * 512;
    if (t == 0) {
        for (int i = 0; i < 2; ++i) asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(bar[i]) : "memory");
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        for (int i = 0; i < 2; ++i) {
            asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 512;" ::"r"(bar[i]) : "memory");
            asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 512, [%2];" ::"r"((unsigned)__cvta_generic_to_shared(s[i])), "l"(from + i * 128), "r"(bar[i]) : "memory");
        }
    }
    __syncthreads();
    for (int i = 0; i < 4; ++i) {
        int k = i & 1;
        asm volatile(
            "{\n .reg .pred p;\nL: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n @!p bra L;\n}" ::"r"(bar[k]), "r"(i / 2 & 1) : "memory");
        for (int j = t; j < 128; j += 64) y[blockIdx.x * 512 + i * 128 + j] = s[k][127 - j];
        __syncthreads();
        if (t == 0 && i + 2 < 4) {
            asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 512;" ::"r"(bar[k]) : "memory");
            asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 512, [%2];" ::"r"((unsigned)__cvta_generic_to_shared(s[k])), "l"(from + (i + 2) * 128), "r"(bar[k]) : "memory");
        }
    }
}
