// Split-K with a second launch that combines: the end of a launch orders everything.
//@ launch split grid 4,2 block 32
//@ launch combine grid 1 block 64
//@ arg x f32[256] input mod 21
//@ arg partial f32[256] scratch
//@ arg y f32[64] output
//@ expect y = column_sum(x, 64)
extern "C" __global__ void split(const float* x, float* partial, float* y) {
    int c = blockIdx.y * 32 + threadIdx.x;
    partial[blockIdx.x * 64 + c] = x[blockIdx.x * 64 + c];
}
extern "C" __global__ void combine(const float* x, const float* partial, float* y) {
    float sum = 0.0f;
    for (int s = 0; s < 4; ++s) sum += partial[s * 64 + threadIdx.x];
    y[threadIdx.x] = sum;
}
