// The textbook tree reduction with its barrier at every level.
//@ launch kernel grid 2 block 128
//@ arg x f32[256] input mod 23
//@ arg y f32[2] output
//@ expect y = block_sum(x, 128)
extern "C" __global__ void kernel(const float* x, float* y) {
    __shared__ float s[128];
    int t = threadIdx.x;
    s[t] = x[blockIdx.x * 128 + t];
    __syncthreads();
    for (int d = 64; d > 0; d /= 2) {
        if (t < d) s[t] += s[t + d];
        __syncthreads();
    }
    if (t == 0) y[blockIdx.x] = s[0];
}
