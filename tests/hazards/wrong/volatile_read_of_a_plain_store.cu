// A volatile read beside atomics races with a plain store of another block all the same.
//@ verdict race
//@ launch kernel grid 2 block 32
//@ arg count i32[1] inout zeros
//@ arg y i32[1] output
extern "C" __global__ void kernel(int* count, int* y) {
    if (blockIdx.x == 0) {
        if (threadIdx.x == 0) count[0] = 5; // CONFLICT
    } else if (threadIdx.x == 0) {
        y[0] = *(volatile int*)count; // HAZARD
        atomicAdd(y, 1);
    }
}
