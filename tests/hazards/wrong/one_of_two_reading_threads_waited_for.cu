// Two threads of a block read a word; only one of them tells the block that overwrites it.
//@ verdict race
//@ launch kernel grid 2 block 64
//@ arg data i32[1] inout zeros
//@ arg flag i32[1] inout zeros
//@ arg y i32[2] output
extern "C" __global__ void kernel(int* data, int* flag, int* y) {
    int t = threadIdx.x;
    if (blockIdx.x == 0) {
        if (t == 0) {
            y[0] = data[0];
            __threadfence();
            atomicExch(flag, 1);
        } else if (t == 32) {
            y[1] = data[0]; // HAZARD
        }
    } else if (t == 0) {
        while (atomicAdd(flag, 0) == 0) {}
        __threadfence();
        data[0] = 1; // HAZARD
    }
}
