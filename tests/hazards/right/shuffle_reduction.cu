// A block sum from shuffles, one word of shared memory a warp, and a second round in the first warp.
//@ launch kernel grid 3 block 128
//@ arg x f32[384] input mod 23
//@ arg y f32[3] output
//@ expect y = block_sum(x, 128)
__inline__ __device__ float warp_sum(float v) {
    for (int d = 16; d > 0; d /= 2) v += __shfl_down_sync(0xffffffffu, v, d);
    return v;
}
extern "C" __global__ void kernel(const float* x, float* y) {
    __shared__ float s[32];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    float v = warp_sum(x[blockIdx.x * blockDim.x + threadIdx.x]);
    if (lane == 0) s[warp] = v;
    __syncthreads();
    v = threadIdx.x < blockDim.x / 32 ? s[lane] : 0.0f;
    if (warp == 0) v = warp_sum(v);
    if (threadIdx.x == 0) y[blockIdx.x] = v;
}
