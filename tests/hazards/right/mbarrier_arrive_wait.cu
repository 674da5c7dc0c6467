// A block-wide mbarrier used as a barrier, over several phases, with tokens.
//@ launch kernel grid 1 block 64
//@ arg x i32[256] input arange
//@ arg y i32[256] output
//@ expect y = reverse_blocks(x, 64)
extern "C" __global__ void kernel(const int* x, int* y) {
    __shared__ int s[2][64];
    __shared__ __align__(8) unsigned long long bar;
    unsigned b = (unsigned)__cvta_generic_to_shared(&bar);
    int t = threadIdx.x;
    if (t == 0) asm volatile("mbarrier.init.shared.b64 [%0], 64;" ::"r"(b) : "memory");
    __syncthreads();
    for (int i = 0; i < 4; ++i) {
        s[i & 1][t] = x[i * 64 + t];
        unsigned long long token;
        asm volatile("mbarrier.arrive.shared.b64 %0, [%1];" : "=l"(token) : "r"(b) : "memory");
        unsigned done = 0;
        while (!done) {
            asm volatile("{\n .reg .pred p;\n mbarrier.test_wait.shared.b64 p, [%1], %2;\n selp.u32 %0, 1, 0, p;\n}" : "=r"(done) : "r"(b), "l"(token) : "memory");
        }
        y[i * 64 + t] = s[i & 1][63 - t];
    }
}
