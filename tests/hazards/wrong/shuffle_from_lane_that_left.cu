// A broadcast from a lane that has returned: the mask names it, but it takes no part any more.
//@ verdict uninitialized
//@ launch kernel grid 1 block 32
//@ arg x i32[32] input arange
//@ arg y i32[32] inout zeros
extern "C" __global__ void kernel(const int* x, int* y) {
    int t = threadIdx.x, v = x[t];
    if (t >= 24) return;
    y[t] = __shfl_sync(0xffffffffu, v, 28); // HAZARD
}
