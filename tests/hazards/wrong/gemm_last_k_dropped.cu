// The loop over K stops one term early.
//@ verdict incorrect
//@ launch kernel grid 1 block 16,16
//@ arg a f32[256] input mod 7
//@ arg b f32[256] input mod 5
//@ arg c f32[256] output
//@ expect c = gemm(a, b, 16, 16, 16)
extern "C" __global__ void kernel(const float* a, const float* b, float* c) {
    float sum = 0.0f;
    for (int k = 0; k < 15; ++k) sum += a[threadIdx.y * 16 + k] * b[k * 16 + threadIdx.x];
    c[threadIdx.y * 16 + threadIdx.x] = sum;
}
