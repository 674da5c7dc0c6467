// Two blocks read a word; the one that overwrites it waits for both.
//@ launch kernel grid 3 block 1
//@ arg data i32[1] inout zeros
//@ arg flag i32[2] inout zeros
//@ arg y i32[2] output
//@ expect y = constant(0)
extern "C" __global__ void kernel(int* data, int* flag, int* y) {
    int b = blockIdx.x;
    if (b < 2) {
        y[b] = data[0];
        __threadfence();
        atomicExch(flag + b, 1);
    } else {
        while (atomicAdd(flag, 0) == 0) {}
        while (atomicAdd(flag + 1, 0) == 0) {}
        __threadfence();
        data[0] = 1;
    }
}
