// A leader's value is broadcast, but the asm statement that makes it reads its own output first.
//@ verdict uninitialized
//@ launch kernel grid 1 block 32
//@ arg x i32[32] input arange
//@ arg y i32[32] output
extern "C" __global__ void kernel(const int* x, int* y) {
    int base;
    asm volatile("{\n.reg .pred p;\nsetp.eq.s32 p, %1, 0;\n@p add.s32 %0, %0, 7;\n@!p mov.s32 %0, 0;\n}" : "=r"(base) : "r"(threadIdx.x)); // CONFLICT
    base = __shfl_sync(0xffffffffu, base, 0);
    y[threadIdx.x] = x[threadIdx.x] + base; // HAZARD
}
