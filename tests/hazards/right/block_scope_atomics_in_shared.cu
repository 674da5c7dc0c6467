// Atomics of block scope on a counter that only one block uses.
//@ launch kernel grid 2 block 64
//@ arg y i32[2] inout zeros
//@ expect y = constant(64)
extern "C" __global__ void kernel(int* y) {
    atomicAdd_block(&y[blockIdx.x], 1);
}
