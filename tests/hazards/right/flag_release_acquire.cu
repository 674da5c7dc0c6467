// One block hands data to another through st.release and ld.acquire.
//@ launch kernel grid 2 block 1
//@ arg data i32[4] scratch
//@ arg flag i32[1] inout zeros
//@ arg y i32[4] output
//@ expect y = constant(42)
extern "C" __global__ void kernel(int* data, int* flag, int* y) {
    if (blockIdx.x == 0) {
        for (int i = 0; i < 4; ++i) data[i] = 42;
        asm volatile("st.release.gpu.global.s32 [%0], 1;" ::"l"(flag) : "memory");
    } else {
        int seen = 0;
        while (seen == 0) asm volatile("ld.acquire.gpu.global.s32 %0, [%1];" : "=r"(seen) : "l"(flag) : "memory");
        for (int i = 0; i < 4; ++i) y[i] = data[i];
    }
}
