// An fma adds to an operand that is declared as an output only: "=f" where "+f" is meant.
//@ verdict uninitialized
//@ launch kernel grid 2 block 32
//@ arg x f32[64] input arange
//@ arg y f32[64] output
extern "C" __global__ void kernel(const float* x, float* y) {
    int i = blockIdx.x * 32 + threadIdx.x;
    float sum = 0.0f;
    asm volatile("fma.rn.f32 %0, %1, %1, %0;" : "=f"(sum) : "f"(x[i])); // CONFLICT
    y[i] = sum; // HAZARD
}
