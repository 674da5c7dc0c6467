// Warp 0 hands a tile to warp 1 through a shared flag with block-scope fences on both sides.
//@ launch kernel grid 1 block 64
//@ arg x f32[32] input arange
//@ arg y f32[32] output
//@ expect y = reverse_blocks(x, 32)
extern "C" __global__ void kernel(const float* x, float* y) {
    __shared__ float tile[32];
    __shared__ volatile int ready;
    int t = threadIdx.x;
    if (t == 0) ready = 0;
    __syncthreads();
    if (t < 32) {
        tile[t] = x[t];
        __threadfence_block();
        __syncwarp();
        if (t == 0) ready = 1;
    } else {
        while (ready == 0) {
        }
        __threadfence_block();
        y[t - 32] = tile[63 - t];
    }
}
