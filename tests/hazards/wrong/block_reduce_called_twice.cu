// A block reduction used twice: its scratch row is written again while warp 0 of the first call still reads.
//@ verdict race
//@ launch kernel grid 1 block 128
//@ arg x f32[128] input arange
//@ arg y f32[2] output
__device__ float reduce(float v, float* rows) {
    for (int d = 16; d > 0; d /= 2) v += __shfl_xor_sync(0xffffffffu, v, d);
    if (threadIdx.x % 32 == 0) rows[threadIdx.x / 32] = v; // HAZARD
    __syncthreads();
    float sum = 0.0f;
    for (int i = 0; i < 4; ++i) sum += rows[i]; // CONFLICT
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
