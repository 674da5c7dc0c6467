// Thread 0 computes an offset for all and nobody waits for it.
//@ verdict race
//@ launch kernel grid 1 block 64
//@ arg x i32[64] input arange
//@ arg y i32[64] output
extern "C" __global__ void kernel(const int* x, int* y) {
    __shared__ int base;
    int t = threadIdx.x;
    if (t == 0) base = x[5]; // CONFLICT
    int b = *(volatile int*)&base; // HAZARD
    y[t] = x[t] + b;
}
