// The block that reads the sum waits until all that add have said so.
//@ launch kernel grid 4 block 32
//@ arg sum i32[1] inout zeros
//@ arg count u32[1] inout zeros
//@ arg y i32[1] output
//@ expect y = constant(96)
extern "C" __global__ void kernel(int* sum, unsigned* count, int* y) {
    if (blockIdx.x < 3) {
        atomicAdd(sum, 1);
        __syncthreads();
        if (threadIdx.x == 0) {
            __threadfence();
            atomicAdd(count, 1);
        }
    } else if (threadIdx.x == 0) {
        while (atomicAdd(count, 0) < 3) {}
        __threadfence();
        y[0] = sum[0];
    }
}
