// Two blocks read a word; the one that overwrites it waits for the first of them only.
//@ verdict race
//@ launch kernel grid 3 block 1
//@ arg data i32[1] inout zeros
//@ arg flag i32[2] inout zeros
//@ arg y i32[2] output
extern "C" __global__ void kernel(int* data, int* flag, int* y) {
    int b = blockIdx.x;
    if (b < 2) {
        y[b] = data[0]; // HAZARD
        __threadfence();
        atomicExch(flag + b, 1);
    } else {
        while (atomicAdd(flag, 0) == 0) {}
        __threadfence();
        data[0] = 1; // HAZARD
    }
}
