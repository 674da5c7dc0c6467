// The value counts only where the flag is set: the comparison with an unset register decides nothing.
//@ launch kernel grid 1 block 64
//@ arg x i32[37] input arange
//@ arg y i32[64] output
//@ arg n i32 37
//@ expect y = padded(x)
extern "C" __global__ void kernel(const int* x, int* y, int n) {
    int t = threadIdx.x, v, chosen;
    asm volatile("{\n.reg .pred p, q;\nsetp.lt.s32 p, %2, %3;\n@p ld.global.u32 %0, [%4];\nsetp.ge.s32 q, %0, 0;\nand.pred q, p, q;\nselp.s32 %1, %0, 0, q;\n}" : "=r"(v), "=r"(chosen) : "r"(t), "r"(n), "l"(x + t) : "memory");
    y[t] = chosen;
}
