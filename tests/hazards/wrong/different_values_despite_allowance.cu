// Stores of the same value are allowed here, but these differ.
//@ verdict race
//@ allow same_value_writes
//@ launch kernel grid 1 block 64
//@ arg x i32[64] input arange
//@ arg y i32[1] output
extern "C" __global__ void kernel(const int* x, int* y) {
    y[0] = x[threadIdx.x] / 32; // HAZARD
}
