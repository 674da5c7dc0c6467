// A bulk copy fills the tile and another one stores it: both are of the asynchronous proxy.
//@ arch sm_90
//@ launch kernel grid 3 block 64
//@ arg x f32[192] input arange
//@ arg y f32[192] output
//@ expect y = copy(x)
extern "C" __global__ void kernel(const float* x, float* y) {
    __shared__ __align__(16) float s[64];
    __shared__ __align__(8) unsigned long long bar;
    unsigned at = (unsigned)__cvta_generic_to_shared(&bar), tile = (unsigned)__cvta_generic_to_shared(s);
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(at) : "memory");
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 256;" ::"r"(at) : "memory");
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 256, [%2];" ::"r"(tile), "l"(x + blockIdx.x * 64), "r"(at) : "memory");
        asm volatile("{\n .reg .pred p;\nL: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], 0;\n @!p bra L;\n}" ::"r"(at) : "memory");
        asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 256;" ::"l"(y + blockIdx.x * 64), "r"((unsigned)__cvta_generic_to_shared(s)) : "memory");
        asm volatile("cp.async.bulk.commit_group;" ::: "memory");
        asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
    }
}
