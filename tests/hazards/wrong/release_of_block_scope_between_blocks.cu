// The flag is released for its own block only, but another block acquires it.
//@ verdict race
//@ launch kernel grid 2 block 1
//@ arg data i32[1] inout zeros
//@ arg flag i32[1] inout zeros
//@ arg y i32[1] output
extern "C" __global__ void kernel(int* data, int* flag, int* y) {
    if (blockIdx.x == 0) {
        *data = 5; // HAZARD
        asm volatile("st.release.cta.global.s32 [%0], 1;" ::"l"(flag) : "memory"); // HAZARD
        y[0] = 1;
    } else {
        int v;
        do asm volatile("ld.acquire.gpu.global.s32 %0, [%1];" : "=r"(v) : "l"(flag) : "memory"); while (v == 0); // HAZARD
        *data += 1; // HAZARD
    }
}
