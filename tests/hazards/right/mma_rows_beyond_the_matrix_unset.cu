// Rows of the left matrix that do not exist are left unset; the rows of the product are not stored.
//@ launch kernel grid 1 block 32
//@ arg a f16[64] input mod 8
//@ arg b f16[64] input mod 4
//@ arg y f32[64] output
//@ expect y = gemm(a, b, 8, 8, 8)
extern "C" __global__ void kernel(const unsigned short* a, const unsigned short* b, float* y) {
    int t = threadIdx.x, row = t / 4, column = t % 4 * 2;
    unsigned a0 = *(const unsigned*)(a + row * 8 + column), a1;
    unsigned b0 = b[column * 8 + row] | (unsigned)b[(column + 1) * 8 + row] << 16;
    asm volatile("{\n.reg .pred p;\nsetp.gt.s32 p, %1, 31;\n@p mov.u32 %0, %1;\n}" : "=r"(a1) : "r"(t));
    float d[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};" : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(a0), "r"(a1), "r"(b0));
    y[row * 8 + column] = d[0];
    y[row * 8 + column + 1] = d[1];
}
