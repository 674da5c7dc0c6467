// There are sixteen barriers, 0 to 15.
//@ verdict crashed
//@ launch kernel grid 1 block 64
//@ arg y i32[64] output
//@ arg id i32 16
extern "C" __global__ void kernel(int* y, int id) {
    int t = threadIdx.x;
    asm volatile("bar.sync %0, 64;" ::"r"(id) : "memory"); // HAZARD
    y[t] = t;
}
