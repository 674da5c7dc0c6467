// A consumer polls an mbarrier for long; the producers arrive last and exit without writing memory.
//@ launch kernel grid 1 block 96
//@ arg x i32[32] input arange
//@ arg y i32[32] output
//@ expect y = copy(x)
extern "C" __global__ void kernel(const int* x, int* y) {
    __shared__ __align__(8) unsigned long long bar;
    __shared__ int s[32];
    unsigned b = (unsigned)__cvta_generic_to_shared(&bar);
    int t = threadIdx.x;
    if (t == 0) asm volatile("mbarrier.init.shared.b64 [%0], 64;" ::"r"(b) : "memory");
    if (t < 32) s[t] = x[t];
    __syncthreads();
    if (t >= 32) {
        unsigned v = t;
        for (int i = 0; i < 40000; ++i) v = v * 1664525u + 1013904223u + (v >> 7);
        if (v != 0x12345678u) asm volatile("{\n .reg .b64 s;\n mbarrier.arrive.shared.b64 s, [%0];\n}" ::"r"(b) : "memory");
        return;
    }
    unsigned done = 0;
    while (!done) {
        asm volatile("{\n .reg .pred p;\n mbarrier.test_wait.parity.shared.b64 p, [%1], 0;\n selp.u32 %0, 1, 0, p;\n}" : "=r"(done) : "r"(b) : "memory");
    }
    y[t] = s[t];
}
