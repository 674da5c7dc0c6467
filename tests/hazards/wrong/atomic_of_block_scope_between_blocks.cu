// Two blocks count in global memory with atomics whose scope is one block.
//@ verdict race
//@ launch kernel grid 2 block 32
//@ arg y i32[1] inout zeros
extern "C" __global__ void kernel(int* y) {
    atomicAdd_block(&y[0], 1); // HAZARD
}
