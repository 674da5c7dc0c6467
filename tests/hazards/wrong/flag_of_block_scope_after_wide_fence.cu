// The fence reaches the device, but the flag behind it is atomic in its own block only.
//@ verdict race
//@ launch kernel grid 2 block 1
//@ arg data i32[1] scratch
//@ arg flag i32[1] inout zeros
//@ arg y i32[1] output
extern "C" __global__ void kernel(int* data, int* flag, int* y) {
    if (blockIdx.x == 0) {
        data[0] = 42; // CONFLICT
        __threadfence();
        atomicExch_block(flag, 1); // HAZARD
    } else {
        while (atomicAdd(flag, 0) == 0) {} // HAZARD
        __threadfence();
        y[0] = data[0]; // HAZARD
    }
}
