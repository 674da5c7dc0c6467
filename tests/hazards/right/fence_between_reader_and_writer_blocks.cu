// Write, fence, atomic count on one side; atomic read, fence, read on the other, by different threads of the blocks.
//@ launch kernel grid 3 block 64
//@ arg x i32[128] input arange
//@ arg mid i32[128] scratch
//@ arg count i32[1] inout zeros
//@ arg y i32[128] output
//@ expect y = reverse_blocks(x, 128)
extern "C" __global__ void kernel(const int* x, int* mid, int* count, int* y) {
    int t = threadIdx.x, b = blockIdx.x;
    if (b < 2) {
        mid[b * 64 + t] = x[b * 64 + t];
        __syncthreads();
        if (t == 0) {
            __threadfence();
            atomicAdd(count, 1);
        }
    } else {
        if (t == 0) {
            while (atomicAdd(count, 0) != 2) {
            }
            __threadfence();
        }
        __syncthreads();
        for (int i = t; i < 128; i += 64) y[i] = mid[127 - i];
    }
}
