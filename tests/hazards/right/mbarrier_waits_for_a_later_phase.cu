// A consumer acquires with its wait for the second phase only: it has seen the first one's releases.
//@ arch sm_90
//@ launch kernel grid 1 block 96
//@ arg x i32[64] input arange
//@ arg y i32[32] output
//@ expect y = block_sum(x, 2)
__device__ void wait_first_relaxed(unsigned b) {
    unsigned done = 0;
    while (!done) asm volatile("{\n .reg .pred p;\n mbarrier.test_wait.parity.relaxed.cta.shared::cta.b64 p, [%1], 0;\n selp.u32 %0, 1, 0, p;\n}" : "=r"(done) : "r"(b) : "memory");
}
__device__ unsigned long long arrive(unsigned b) {
    unsigned long long token;
    asm volatile("mbarrier.arrive.shared.b64 %0, [%1];" : "=l"(token) : "r"(b) : "memory");
    return token;
}
extern "C" __global__ void kernel(const int* x, int* y) {
    __shared__ __align__(8) unsigned long long bar;
    __shared__ int s[64];
    unsigned b = (unsigned)__cvta_generic_to_shared(&bar);
    int t = threadIdx.x;
    if (t == 0) asm volatile("mbarrier.init.shared.b64 [%0], 64;" ::"r"(b) : "memory");
    __syncthreads();
    if (t >= 64) {
        arrive(b);
        wait_first_relaxed(b);
        s[t - 32] = x[t - 32];
        arrive(b);
        return;
    }
    if (t >= 32) {
        s[t - 32] = x[t - 32];
        arrive(b);
        return;
    }
    wait_first_relaxed(b);
    unsigned long long token = arrive(b);
    unsigned done = 0;
    while (!done) asm volatile("{\n .reg .pred p;\n mbarrier.test_wait.shared.b64 p, [%1], %2;\n selp.u32 %0, 1, 0, p;\n}" : "=r"(done) : "r"(b), "l"(token) : "memory");
    y[t] = s[2 * t] + s[2 * t + 1];
}
