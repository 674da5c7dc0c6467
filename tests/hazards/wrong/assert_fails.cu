// An assertion that does not hold for the last thread.
//@ verdict crashed
//@ launch kernel grid 1 block 32
//@ arg x i32[32] input arange
//@ arg y i32[32] output
extern "C" __global__ void kernel(const int* x, int* y) {
    int v = x[threadIdx.x];
    assert(v < 31); // HAZARD
    y[threadIdx.x] = v;
}
