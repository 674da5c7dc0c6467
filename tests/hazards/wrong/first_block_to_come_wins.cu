// Whichever block comes first writes its number: no race, and another result in another order.
//@ verdict nondeterministic
//@ launch kernel grid 8 block 1
//@ arg winner i32[1] inout zeros
extern "C" __global__ void kernel(int* winner) {
    atomicCAS(winner, 0, (int)blockIdx.x + 1);
}
