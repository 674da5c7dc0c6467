// Stores of the same value by many threads, where the space allows them.
//@ allow same_value_writes
//@ launch kernel grid 2 block 64
//@ arg x i32[128] input arange
//@ arg y i32[1] output
//@ expect y = constant(1)
extern "C" __global__ void kernel(const int* x, int* y) {
    if (x[blockIdx.x * 64 + threadIdx.x] >= 0) y[0] = 1;
}
