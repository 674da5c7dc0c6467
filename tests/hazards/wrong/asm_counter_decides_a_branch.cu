// A counter that an asm statement increments without reading it in decides how long a loop runs.
//@ verdict uninitialized
//@ launch kernel grid 1 block 32
//@ arg x i32[32] input mod 4
//@ arg y i32[32] output
extern "C" __global__ void kernel(const int* x, int* y) {
    int n = 0;
    asm volatile("add.s32 %0, %0, %1;" : "=r"(n) : "r"(x[threadIdx.x])); // CONFLICT
    int sum = 0;
    if (n > 2) sum = x[31 - threadIdx.x] * x[0]; // HAZARD
    else asm volatile("mov.u32 %0, %%laneid;" : "=r"(sum));
    y[threadIdx.x] = sum;
}
