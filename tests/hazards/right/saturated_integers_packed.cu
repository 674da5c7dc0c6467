// `cvt.pack` saturates two integers, and shifts a third to above them.
//@ arch sm_80
//@ launch kernel grid 1 block 32
//@ arg x i32[32] input arange
//@ arg y i32[32] output
//@ expect y = copy(x)
extern "C" __global__ void kernel(const int* x, int* y) {
    int v = x[threadIdx.x], big = v * 5000 - 70000, small = v * 40 - 500, halves, bytes, plain;
    asm("cvt.pack.sat.s16.s32 %0, %1, %2;" : "=r"(halves) : "r"(big), "r"(v));
    asm("cvt.pack.sat.u8.s32.b32 %0, %1, %2, %3;" : "=r"(bytes) : "r"(small), "r"(v), "r"(halves));
    int top = min(max(big, -32768), 32767), byte = min(max(small, 0), 255);
    plain = (top << 16) | v;
    bool right = halves == plain && bytes == (int)(((unsigned)plain << 16) | (unsigned)(byte << 8) | (unsigned)v);
    y[threadIdx.x] = right ? v : -1;
}
