// The second output of a thread starts from the first one's sum.
//@ verdict incorrect
//@ launch kernel grid 1 block 16,8
//@ arg a f32[256] input mod 7
//@ arg b f32[256] input mod 5
//@ arg c f32[256] output
//@ expect c = gemm(a, b, 16, 16, 16)
extern "C" __global__ void kernel(const float* a, const float* b, float* c) {
    float sum = 0.0f;
    for (int r = threadIdx.y; r < 16; r += 8) {
        for (int k = 0; k < 16; ++k) sum += a[r * 16 + k] * b[k * 16 + threadIdx.x];
        c[r * 16 + threadIdx.x] = sum;
    }
}
