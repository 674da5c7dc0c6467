// The empty barrier counts every lane of the consumer, but one lane never arrives.
//@ verdict deadlock
//@ arch sm_90
//@ launch kernel grid 1 block 64
//@ arg x i32[96] input arange
//@ arg y i32[96] output
__device__ void wait(unsigned bar, unsigned parity) {
    unsigned done = 0;
    while (!done) asm volatile("{\n .reg .pred p;\n mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n selp.u32 %0, 1, 0, p;\n}" : "=r"(done) : "r"(bar), "r"(parity) : "memory"); // HAZARD
}
__device__ void arrive(unsigned bar) { asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(bar) : "memory"); }
extern "C" __global__ void kernel(const int* x, int* y) {
    __shared__ int s[32];
    __shared__ __align__(8) unsigned long long full, empty;
    unsigned f = (unsigned)__cvta_generic_to_shared(&full), e = (unsigned)__cvta_generic_to_shared(&empty);
    int t = threadIdx.x;
    if (t == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 32;" ::"r"(f) : "memory");
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 32;" ::"r"(e) : "memory");
    }
    __syncthreads();
    for (int i = 0; i < 3; ++i) {
        if (t < 32) {
            wait(e, (i & 1) ^ 1);
            s[t] = x[i * 32 + t];
            arrive(f);
        } else {
            wait(f, i & 1);
            y[i * 32 + t - 32] = s[t - 32];
            if (t != 63) arrive(e);
        }
    }
}
