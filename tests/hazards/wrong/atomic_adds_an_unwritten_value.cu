// What an atomic adds was never written in half of the lanes.
//@ verdict uninitialized
//@ launch kernel grid 1 block 32
//@ arg x i32[32] input arange
//@ arg y i32[1] inout zeros
extern "C" __global__ void kernel(const int* x, int* y) {
    int v;
    asm volatile("{\n.reg .pred p;\nsetp.lt.s32 p, %1, 16;\n@p mov.u32 %0, %2;\n}" : "=r"(v) : "r"(threadIdx.x), "r"(x[threadIdx.x]));
    atomicAdd(y, v); // HAZARD
}
