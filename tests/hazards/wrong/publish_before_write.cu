// The flag is released before the data is written.
//@ verdict race
//@ launch kernel grid 2 block 1
//@ arg data i32[1] scratch
//@ arg flag i32[1] inout zeros
//@ arg y i32[2] output
extern "C" __global__ void kernel(int* data, int* flag, int* y) {
    if (blockIdx.x == 0) {
        asm volatile("st.release.gpu.global.s32 [%0], 1;" ::"l"(flag) : "memory");
        data[0] = 42; // HAZARD
        y[0] = 1;
    } else {
        int seen = 0;
        while (seen == 0) {
            asm volatile("ld.acquire.gpu.global.s32 %0, [%1];" : "=r"(seen) : "l"(flag) : "memory");
        }
        int v = data[0]; // HAZARD
        y[1] = v;
    }
}
