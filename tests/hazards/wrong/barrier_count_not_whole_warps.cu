// A barrier's thread count must be a multiple of the warp size.
//@ verdict crashed
//@ launch kernel grid 1 block 64
//@ arg y i32[64] output
//@ arg count i32 40
extern "C" __global__ void kernel(int* y, int count) {
    int t = threadIdx.x;
    asm volatile("bar.sync 1, %0;" ::"r"(count) : "memory"); // HAZARD
    y[t] = t;
}
