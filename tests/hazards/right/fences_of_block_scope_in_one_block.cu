// One warp hands over to another with fences for the block, which are enough inside it.
//@ launch kernel grid 1 block 64
//@ arg data i32[1] scratch
//@ arg flag i32[1] inout zeros
//@ arg y i32[1] output
//@ expect y = constant(7)
extern "C" __global__ void kernel(int* data, int* flag, int* y) {
    if (threadIdx.x == 0) {
        data[0] = 7;
        __threadfence_block();
        atomicExch_block(flag, 1);
    } else if (threadIdx.x == 32) {
        while (atomicAdd_block(flag, 0) == 0) {}
        __threadfence_block();
        y[0] = data[0];
    }
}
