// A chain: block i adds to what block i - 1 hands over, in whichever order blocks start.
//@ launch kernel grid 12 block 1
//@ arg carry i32[12] scratch
//@ arg flag i32[12] inout zeros
//@ arg y i32[12] output
//@ expect y = iota()
extern "C" __global__ void kernel(int* carry, int* flag, int* y) {
    int b = blockIdx.x, before = -1;
    if (b > 0) {
        while (atomicAdd(&flag[b - 1], 0) == 0) {}
        __threadfence();
        before = carry[b - 1];
    }
    carry[b] = before + 1;
    y[b] = before + 1;
    __threadfence();
    atomicExch(&flag[b], 1);
}
