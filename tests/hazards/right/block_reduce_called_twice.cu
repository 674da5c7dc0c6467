// A block reduction called twice, with the barrier that protects its scratch row.
//@ launch kernel grid 1 block 128
//@ arg x f32[128] input mod 9
//@ arg y f32[2] output
//@ expect y = sum_and_squares(x)
__device__ float reduce(float v, float* rows) {
    for (int d = 16; d > 0; d /= 2) v += __shfl_xor_sync(0xffffffffu, v, d);
    if (threadIdx.x % 32 == 0) rows[threadIdx.x / 32] = v;
    __syncthreads();
    float sum = 0.0f;
    for (int i = 0; i < 4; ++i) sum += rows[i];
    __syncthreads();
    return sum;
}
extern "C" __global__ void kernel(const float* x, float* y) {
    __shared__ float rows[4];
    float v = x[threadIdx.x];
    float sum = reduce(v, rows);
    float squares = reduce(v * v, rows);
    if (threadIdx.x == 0) {
        y[0] = sum;
        y[1] = squares;
    }
}
