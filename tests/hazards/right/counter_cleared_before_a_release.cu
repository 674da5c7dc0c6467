// Block 0 clears the counter and releases; the others acquire before they add.
//@ launch kernel grid 3 block 1
//@ arg count i32[1] scratch
//@ arg flag i32[2] inout zeros
//@ arg y i32[1] output
//@ expect y = constant(2)
extern "C" __global__ void kernel(int* count, int* flag, int* y) {
    if (blockIdx.x == 0) {
        count[0] = 0;
        __threadfence();
        atomicExch(flag, 1);
        while (atomicAdd(flag + 1, 0) < 2) {}
        __threadfence();
        y[0] = count[0];
    } else {
        while (atomicAdd(flag, 0) == 0) {}
        __threadfence();
        atomicAdd(count, 1);
        __threadfence();
        atomicAdd(flag + 1, 1);
    }
}
