// A kernel that traps on a value it does not know.
//@ verdict crashed
//@ launch kernel grid 1 block 32
//@ arg x i32[32] input arange
//@ arg y i32[32] output
extern "C" __global__ void kernel(const int* x, int* y) {
    int v = x[threadIdx.x];
    if (v == 17) __trap(); // HAZARD
    y[threadIdx.x] = v;
}
