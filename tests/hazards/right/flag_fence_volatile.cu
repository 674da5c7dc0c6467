// Block 1 produces, block 0 spins on a volatile flag with fences on both sides: blocks must run side by side.
//@ launch kernel grid 2 block 32
//@ arg data f32[32] scratch
//@ arg flag i32[1] inout zeros
//@ arg x f32[32] input arange
//@ arg y f32[32] output
//@ expect y = reverse_blocks(x, 32)
extern "C" __global__ void kernel(float* data, volatile int* flag, const float* x, float* y) {
    int t = threadIdx.x;
    if (blockIdx.x == 1) {
        data[t] = x[t];
        __threadfence();
        __syncthreads();
        if (t == 0) *flag = 1;
    } else {
        if (t == 0) {
            while (*flag == 0) {
            }
            __threadfence();
        }
        __syncthreads();
        y[t] = data[31 - t];
    }
}
