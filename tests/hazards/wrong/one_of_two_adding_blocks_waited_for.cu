// Two blocks add to a word; the one that reads the sum waits for the second of them only.
//@ verdict race
//@ launch kernel grid 3 block 1
//@ arg sum i32[1] inout zeros
//@ arg flag i32[2] inout zeros
//@ arg y i32[1] output
extern "C" __global__ void kernel(int* sum, int* flag, int* y) {
    int b = blockIdx.x;
    if (b < 2) {
        atomicAdd(sum, 1); // HAZARD
        __threadfence();
        atomicExch(flag + b, 1);
    } else {
        while (atomicAdd(flag + 1, 0) == 0) {}
        __threadfence();
        y[0] = sum[0]; // HAZARD
    }
}
