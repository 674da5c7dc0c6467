// The first launch fills the even partial sums only, the second adds up all of them.
//@ verdict uninitialized
//@ launch split grid 4 block 32
//@ launch combine grid 1 block 1
//@ arg x f32[128] input arange
//@ arg partial f32[8] scratch
//@ arg y f32[1] output
extern "C" __global__ void split(const float* x, float* partial, float* y) {
    float v = x[blockIdx.x * 32 + threadIdx.x];
    for (int d = 16; d > 0; d /= 2) v += __shfl_xor_sync(0xffffffffu, v, d);
    if (threadIdx.x == 0) partial[2 * blockIdx.x] = v;
}
extern "C" __global__ void combine(const float* x, const float* partial, float* y) {
    float sum = 0.0f;
    for (int i = 0; i < 8; ++i) sum += partial[i]; // HAZARD
    y[0] = sum;
}
