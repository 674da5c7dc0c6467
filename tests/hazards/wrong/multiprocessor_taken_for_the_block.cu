// One block a multiprocessor is assumed: %smid is taken for the block's number.
//@ verdict incorrect|nondeterministic
//@ launch kernel grid 8 block 32
//@ arg x i32[256] input arange
//@ arg y i32[256] output
extern "C" __global__ void kernel(const int* x, int* y) {
    unsigned sm;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
    if (sm < 8) y[sm * 32 + threadIdx.x] = x[sm * 32 + threadIdx.x];
}
