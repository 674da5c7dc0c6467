// A lock between blocks is taken and given back by atomics, but no fence publishes what it guards.
//@ verdict race
//@ launch kernel grid 4 block 1
//@ arg lock i32[1] inout zeros
//@ arg sum i32[1] inout zeros
extern "C" __global__ void kernel(int* lock, int* sum) {
    while (atomicCAS(lock, 0, 1) != 0) {}
    *sum += blockIdx.x; // HAZARD
    atomicExch(lock, 0);
}
