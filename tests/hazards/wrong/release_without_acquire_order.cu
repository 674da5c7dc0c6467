// The flag is published with a release of block scope, the reader sits in another block.
//@ verdict race
//@ launch kernel grid 2 block 1
//@ arg data i32[1] scratch
//@ arg flag i32[1] inout zeros
//@ arg y i32[2] output
extern "C" __global__ void kernel(int* data, int* flag, int* y) {
    if (blockIdx.x == 0) {
        data[0] = 42; // CONFLICT
        asm volatile("st.release.cta.global.s32 [%0], 1;" ::"l"(flag) : "memory"); // CONFLICT
        y[0] = 1;
    } else {
        int seen = 0;
        while (seen == 0) {
            asm volatile("ld.acquire.cta.global.s32 %0, [%1];" : "=r"(seen) : "l"(flag) : "memory"); // HAZARD
        }
        int v = data[0]; // HAZARD
        y[1] = v;
    }
}
