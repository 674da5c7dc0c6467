// The lower half of the warp takes a value of a lane that its mask does not name.
//@ verdict uninitialized
//@ launch kernel grid 1 block 32
//@ arg x i32[32] input arange
//@ arg y i32[32] output
extern "C" __global__ void kernel(const int* x, int* y) {
    int t = threadIdx.x, v = x[t];
    if (t < 16) v = __shfl_sync(0x0000ffffu, v, 20); // HAZARD
    y[t] = v;
}
