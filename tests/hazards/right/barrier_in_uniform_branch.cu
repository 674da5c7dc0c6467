// A barrier inside a branch that all threads of a block take alike, differently from block to block.
//@ launch kernel grid 3 block 64
//@ arg x f32[192] input arange
//@ arg y f32[192] output
//@ expect y = even_blocks_reversed(x, 64)
extern "C" __global__ void kernel(const float* x, float* y) {
    __shared__ float s[64];
    int t = threadIdx.x, i = blockIdx.x * 64 + t;
    if (blockIdx.x % 2 == 0) {
        s[t] = x[i];
        __syncthreads();
        y[i] = s[63 - t];
    } else {
        y[i] = x[i];
    }
}
