// Compaction by an atomic counter: the set is right, its order depends on the schedule.
//@ verdict nondeterministic
//@ launch kernel grid 1 block 128
//@ arg x i32[128] input arange
//@ arg count i32[1] inout zeros
//@ arg y i32[128] output
extern "C" __global__ void kernel(const int* x, int* count, int* y) {
    int slot = atomicAdd(count, 1);
    y[slot] = x[threadIdx.x];
}
