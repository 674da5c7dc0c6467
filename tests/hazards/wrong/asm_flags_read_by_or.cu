// Bits are set in an operand that is declared as an output only: "=r" where "+r" is meant.
//@ verdict uninitialized
//@ launch kernel grid 1 block 64
//@ arg x i32[64] input mod 8
//@ arg y i32[64] output
extern "C" __global__ void kernel(const int* x, int* y) {
    unsigned flags = 0;
    asm volatile("or.b32 %0, %0, %1;" : "=r"(flags) : "r"(1u << x[threadIdx.x])); // CONFLICT
    y[threadIdx.x] = (int)(flags & 0xffu) + 1; // HAZARD
}
