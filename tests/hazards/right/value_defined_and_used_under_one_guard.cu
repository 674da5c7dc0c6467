// A register is defined and used under the same predicate.
//@ launch kernel grid 1 block 64
//@ arg x f32[37] input arange
//@ arg y f32[64] output
//@ arg n i32 37
//@ expect y = padded(x)
extern "C" __global__ void kernel(const float* x, float* y, int n) {
    int t = threadIdx.x;
    float v;
    asm volatile("{\n.reg .pred p;\n.reg .f32 f;\nsetp.lt.s32 p, %1, %2;\n@p ld.global.f32 f, [%3];\nmov.f32 %0, 0f00000000;\n@p add.f32 %0, %0, f;\n}" : "=f"(v) : "r"(t), "r"(n), "l"(x + t) : "memory");
    y[t] = v;
}
