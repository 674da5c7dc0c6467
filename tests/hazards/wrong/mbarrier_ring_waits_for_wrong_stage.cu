// The consumer waits for the stage behind the one it reads, in a phase that may be over.
//@ verdict deadlock|race
//@ arch sm_90
//@ launch kernel grid 1 block 64
//@ arg x i32[64] input arange
//@ arg y i32[64] output
__device__ void wait(unsigned bar, unsigned parity) {
    asm volatile(
        "{\n .reg .pred p;\nL: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n @!p bra L;\n}" ::"r"(bar), "r"(parity) : "memory"); // HAZARD
}
extern "C" __global__ void kernel(const int* x, int* y) {
    __shared__ int s[2][32];
    __shared__ __align__(8) unsigned long long full[2];
    int t = threadIdx.x;
    if (t == 0) {
        for (int i = 0; i < 2; ++i)
            asm volatile("mbarrier.init.shared::cta.b64 [%0], 32;" ::"r"((unsigned)__cvta_generic_to_shared(&full[i])) : "memory");
    }
    __syncthreads();
    for (int i = 0; i < 2; ++i) {
        if (t < 32) {
            s[i][t] = x[i * 32 + t]; // CONFLICT
            asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"((unsigned)__cvta_generic_to_shared(&full[i])) : "memory");
        } else {
            wait((unsigned)__cvta_generic_to_shared(&full[1 - i]), i == 0 ? 1 : 0);
            int v = s[i][63 - t]; // HAZARD
            y[i * 32 + t - 32] = v;
        }
    }
}
