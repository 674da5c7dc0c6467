// A loop uses what the iteration before loaded; in the first iteration that value is unset and not used.
//@ launch kernel grid 1 block 32
//@ arg x i32[128] input arange
//@ arg y i32[128] output
//@ expect y = copy(x)
extern "C" __global__ void kernel(const int* x, int* y) {
    int loaded;
    for (int i = 0; i <= 4; ++i) {
        if (i > 0) y[(i - 1) * 32 + threadIdx.x] = loaded;
        if (i < 4) asm volatile("ld.global.u32 %0, [%1];" : "=r"(loaded) : "l"(x + i * 32 + threadIdx.x) : "memory");
    }
}
