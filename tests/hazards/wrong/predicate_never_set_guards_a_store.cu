// A store is guarded by a predicate that one of two paths leaves unset.
//@ verdict uninitialized
//@ launch kernel grid 1 block 32
//@ arg x i32[32] input arange
//@ arg y i32[32] inout zeros
extern "C" __global__ void kernel(const int* x, int* y) {
    int t = threadIdx.x;
    asm volatile("{\n.reg .pred p, q;\nsetp.lt.s32 p, %0, 16;\n@p setp.gt.s32 q, %1, 3;\n@q st.global.u32 [%2], %1;\n}" ::"r"(t), "r"(x[t]), "l"(y + t) : "memory"); // HAZARD
}
