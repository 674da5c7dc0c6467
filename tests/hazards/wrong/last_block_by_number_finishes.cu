// The block of the highest number takes it that the others are done.
//@ verdict nondeterministic
//@ launch kernel grid 8 block 1
//@ arg count i32[1] inout zeros
//@ arg y i32[1] output
extern "C" __global__ void kernel(int* count, int* y) {
    int before = atomicAdd(count, 1);
    if (blockIdx.x == gridDim.x - 1) y[0] = before;
}
