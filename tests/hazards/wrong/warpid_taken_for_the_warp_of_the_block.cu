// %warpid is taken for the warp's place in its block.
//@ verdict out_of_bounds|incorrect|race|uninitialized
//@ also uninitialized
//@ launch kernel grid 2 block 128
//@ arg x i32[256] input arange
//@ arg y i32[256] output
extern "C" __global__ void kernel(const int* x, int* y) {
    unsigned warp;
    asm volatile("mov.u32 %0, %%warpid;" : "=r"(warp));
    int i = blockIdx.x * 128 + warp * 32 + (threadIdx.x & 31);
    y[i] = x[i]; // HAZARD
}
