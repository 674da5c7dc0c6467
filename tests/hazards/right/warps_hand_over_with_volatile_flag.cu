// A volatile flag in shared memory with fences for the block on both sides: order inside the block.
//@ launch kernel grid 2 block 64
//@ arg x f32[64] input arange
//@ arg y f32[64] output
//@ expect y = reverse_blocks(x, 32)
extern "C" __global__ void kernel(const float* x, float* y) {
    __shared__ float tile[32];
    __shared__ volatile int ready;
    int t = threadIdx.x;
    if (t == 0) ready = 0;
    __syncthreads();
    if (t < 32) {
        tile[t] = x[blockIdx.x * 32 + t];
        __syncwarp();
        if (t == 0) {
            __threadfence_block();
            ready = 1;
        }
    } else {
        while (ready == 0) {}
        __threadfence_block();
        y[blockIdx.x * 32 + t - 32] = tile[63 - t];
    }
}
