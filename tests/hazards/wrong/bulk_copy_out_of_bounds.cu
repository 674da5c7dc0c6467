// The last bulk copy brings a whole tile although only half of one is left.
//@ verdict out_of_bounds
//@ also uninitialized deadlock
//@ arch sm_90
//@ launch kernel grid 2 block 32
//@ arg x f32[384] input arange
//@ arg y f32[512] output
extern "C" __global__ void kernel(const float* x, float* y) {
    __shared__ __align__(16) float s[256];
    __shared__ __align__(8) unsigned long long bar;
    unsigned b = (unsigned)__cvta_generic_to_shared(&bar), d = (unsigned)__cvta_generic_to_shared(s);
    int t = threadIdx.x;
    if (t == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(b) : "memory");
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    if (t == 0) {
        const float* from = x + blockIdx.x * 256;
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 1024;" ::"r"(b) : "memory");
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 1024, [%2];" ::"r"(d), "l"(from), "r"(b) : "memory"); // HAZARD
    }
    asm volatile(
        "{\n .reg .pred p;\nL: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], 0;\n @!p bra L;\n}" ::"r"(b) : "memory");
    for (int i = t; i < 256; i += 32) y[blockIdx.x * 256 + i] = s[i];
}
