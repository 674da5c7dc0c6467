// Only the leader has the value that a shuffle broadcasts; in the other lanes the register is unset.
//@ launch kernel grid 2 block 64
//@ arg x i32[128] input arange
//@ arg next i32[1] inout zeros
//@ arg y i32[128] output
//@ expect y = copy(x)
extern "C" __global__ void kernel(const int* x, int* next, int* y) {
    int base;
    if ((threadIdx.x & 31) == 0) base = atomicAdd(next, 32);
    base = __shfl_sync(0xffffffffu, base, 0);
    int i = base + (threadIdx.x & 31);
    y[i] = x[i];
}
