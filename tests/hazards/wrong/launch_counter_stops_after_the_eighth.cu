// The kernel counts its launches and does nothing after the eighth.
//@ verdict module_state
//@ keep variables
//@ launch kernel grid 1 block 32
//@ arg x i32[32] input arange
//@ arg y i32[32] output
__device__ int launches[32];
extern "C" __global__ void kernel(const int* x, int* y) {
    int t = threadIdx.x;
    if (launches[t]++ < 8) y[t] = x[t]; // HAZARD
}
