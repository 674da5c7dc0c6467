// The workspace has a row for each of the 108 multiprocessors, but their numbers have gaps.
//@ verdict out_of_bounds
//@ launch kernel grid 108 block 1024 shared 100000
//@ arg work i32[108] scratch
//@ arg y i32[1] inout zeros
extern "C" __global__ void kernel(int* work, int* y) {
    extern __shared__ int big[];
    unsigned sm;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
    if (threadIdx.x == 0) {
        big[0] = 1;
        work[sm] = big[0]; // HAZARD
        atomicAdd(y, work[sm]); // HAZARD
    }
}
