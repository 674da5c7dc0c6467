// One of two guarded moves defines the register, whatever the predicate.
//@ launch kernel grid 1 block 64
//@ arg x i32[64] input arange
//@ arg y i32[64] output
//@ expect y = copy(x)
extern "C" __global__ void kernel(const int* x, int* y) {
    int t = threadIdx.x, v;
    asm volatile("{\n.reg .pred p;\nsetp.lt.s32 p, %1, 20;\n@p mov.u32 %0, %2;\n@!p add.s32 %0, %2, 0;\n}" : "=r"(v) : "r"(t), "r"(x[t]));
    y[t] = v;
}
