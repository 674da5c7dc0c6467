// The same functions under --use_fast_math: approximations of the hardware.
//@ options --use_fast_math
//@ launch kernel grid 1 block 64
//@ arg x f32[64] input normal
//@ arg y f32[256] output
//@ tolerance 2e-5
//@ expect y = fast_math(x)
extern "C" __global__ void kernel(const float* x, float* y) {
    int t = threadIdx.x;
    float v = x[t];
    y[t] = sinf(v);
    y[64 + t] = expf(v);
    y[128 + t] = 3.0f / (fabsf(v) + 1.0f);
    y[192 + t] = sqrtf(fabsf(v) + 1.0f);
}
