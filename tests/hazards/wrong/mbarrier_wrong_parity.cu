// The wait asks for the wrong phase: it ends at once, or never if the copy was faster.
//@ verdict deadlock|race
//@ arch sm_90
//@ launch kernel grid 1 block 32
//@ arg x f32[256] input arange
//@ arg y f32[256] output
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
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 1024;" ::"r"(b) : "memory");
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 1024, [%2];" ::"r"(d), "l"(x), "r"(b) : "memory"); // CONFLICT
    }
    asm volatile(
        "{\n .reg .pred p;\nL: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], 1;\n @!p bra L;\n}" ::"r"(b) : "memory"); // HAZARD
    for (int i = t; i < 256; i += 32) {
        float v = s[i]; // HAZARD
        y[i] = v;
    }
}
