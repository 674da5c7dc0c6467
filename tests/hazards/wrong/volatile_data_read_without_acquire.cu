// A reader spins on a volatile flag and reads volatile data, without a fence: the data may be old.
//@ verdict race
//@ launch kernel grid 2 block 1
//@ arg data i32[1] scratch
//@ arg flag i32[1] inout zeros
//@ arg y i32[1] output
extern "C" __global__ void kernel(volatile int* data, volatile int* flag, int* y) {
    if (blockIdx.x == 0) {
        data[0] = 42; // CONFLICT
        __threadfence();
        *flag = 1;
    } else {
        while (*flag == 0) {}
        y[0] = data[0]; // HAZARD
    }
}
