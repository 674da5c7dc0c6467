// Split-K: every block adds up all partial sums in the same launch, before other blocks have written theirs.
//@ verdict race
//@ launch kernel grid 4 block 32
//@ arg x f32[128] input arange
//@ arg partial f32[4] scratch
//@ arg y f32[4] output
extern "C" __global__ void kernel(const float* x, float* partial, float* y) {
    float v = x[blockIdx.x * 32 + threadIdx.x];
    for (int d = 16; d > 0; d /= 2) v += __shfl_xor_sync(0xffffffffu, v, d);
    if (threadIdx.x == 0) partial[blockIdx.x] = v; // HAZARD
    __syncthreads();
    if (threadIdx.x == 0) {
        float sum = 0.0f;
        for (int i = 0; i < 4; ++i) sum += partial[i]; // HAZARD
        y[blockIdx.x] = sum;
    }
}
