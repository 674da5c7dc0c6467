// The producer refills the stage without waiting until its consumers emptied it.
//@ verdict race
//@ arch sm_90
//@ launch kernel grid 1 block 64
//@ arg x i32[64] input arange
//@ arg y i32[64] output
__device__ void wait(unsigned bar) {
    asm volatile("{\n .reg .pred p;\nL: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], 0;\n @!p bra L;\n}" ::"r"(bar) : "memory");
}
extern "C" __global__ void kernel(const int* x, int* y) {
    __shared__ __align__(128) int s[32];
    __shared__ __align__(8) unsigned long long full[2];
    int t = threadIdx.x;
    unsigned bar = (unsigned)__cvta_generic_to_shared(full);
    if (t < 2) asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(bar + 8 * t) : "memory");
    __syncthreads();
    if (t == 0) {
        for (int i = 0; i < 2; ++i) {
            asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 128;" ::"r"(bar + 8 * i) : "memory");
            asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 128, [%2];" ::"r"((unsigned)__cvta_generic_to_shared(s)), "l"(x + i * 32), "r"(bar + 8 * i) : "memory"); // HAZARD
            wait(bar + 8 * i);
        }
    } else if (t >= 32) {
        for (int i = 0; i < 2; ++i) {
            wait(bar + 8 * i);
            y[i * 32 + t - 32] = s[t - 32]; // HAZARD
        }
    }
}
