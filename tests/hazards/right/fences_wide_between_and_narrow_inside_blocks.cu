// Block 0 releases to a thread of block 1, which releases to another of its block: order is passed on.
//@ launch kernel grid 2 block 64
//@ arg data i32[1] scratch
//@ arg flag i32[2] inout zeros
//@ arg y i32[1] output
//@ expect y = constant(9)
extern "C" __global__ void kernel(int* data, int* flag, int* y) {
    int t = threadIdx.x;
    if (blockIdx.x == 0) {
        if (t == 0) {
            data[0] = 9;
            __threadfence();
            atomicExch(flag, 1);
        }
    } else if (t == 0) {
        while (atomicAdd(flag, 0) == 0) {}
        __threadfence();
        atomicExch_block(flag + 1, 1);
    } else if (t == 32) {
        while (atomicAdd_block(flag + 1, 0) == 0) {}
        __threadfence_block();
        y[0] = data[0];
    }
}
