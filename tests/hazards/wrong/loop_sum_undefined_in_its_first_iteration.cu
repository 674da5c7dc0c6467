// A running maximum is compared with itself before the first element was taken.
//@ verdict uninitialized
//@ launch kernel grid 1 block 32
//@ arg x i32[128] input arange
//@ arg y i32[32] output
extern "C" __global__ void kernel(const int* x, int* y) {
    int best;
    for (int i = threadIdx.x; i < 128; i += 32) {
        asm volatile("max.s32 %0, %0, %1;" : "=r"(best) : "r"(x[i])); // CONFLICT
    }
    y[threadIdx.x] = best; // HAZARD
}
