// Block 1 waits for block 0's flag and then fences for its own block only: what it reads may be old.
//@ verdict race
//@ launch kernel grid 2 block 1
//@ arg data i32[1] scratch
//@ arg flag i32[1] inout zeros
//@ arg y i32[1] output
extern "C" __global__ void kernel(int* data, int* flag, int* y) {
    if (blockIdx.x == 0) {
        data[0] = 42; // CONFLICT
        __threadfence();
        atomicExch(flag, 1);
    } else {
        while (atomicAdd(flag, 0) == 0) {}
        __threadfence_block();
        y[0] = data[0]; // HAZARD
    }
}
