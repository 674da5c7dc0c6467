// The first warp polls an mbarrier that never ends its phase, or a flag; the second computes and sets the flag; the third
// waits for the first.
//@ arch sm_90
//@ launch kernel grid 1 block 96
//@ arg x f32[96] input arange
//@ arg y f32[96] output
//@ expect y = copy(x)
extern "C" __global__ void kernel(const float* x, float* y) {
    __shared__ __align__(8) unsigned long long bar;
    __shared__ unsigned flag, left;
    unsigned b = (unsigned)__cvta_generic_to_shared(&bar);
    int t = threadIdx.x;
    if (t == 0) {
        asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(b) : "memory");
        flag = left = 0;
    }
    __syncthreads();
    if (t < 32) {
        unsigned done = 0;
        while (!done && *(volatile unsigned*)&flag == 0) {
            asm volatile("{\n .reg .pred p;\n mbarrier.try_wait.parity.shared.b64 p, [%1], 0;\n selp.u32 %0, 1, 0, p;\n}" : "=r"(done) : "r"(b) : "memory");
        }
        if (t == 0) *(volatile unsigned*)&left = 1;
    } else if (t < 64) {
        unsigned sum = t;
        for (int i = 0; i < 20000; ++i) sum = sum * 1664525u + 1013904223u;
        if (t == 32 && sum != 7) *(volatile unsigned*)&flag = 1;
    } else {
        while (*(volatile unsigned*)&left == 0) {}
    }
    y[t] = x[t];
}
