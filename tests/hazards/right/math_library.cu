// Single-precision functions of the math library, slow paths included.
//@ launch kernel grid 1 block 64
//@ arg x f32[64] input normal
//@ arg y f32[640] output
//@ tolerance 4e-6
//@ expect y = math_library(x)
extern "C" __global__ void kernel(const float* x, float* y) {
    int t = threadIdx.x;
    float v = x[t];
    y[t] = sinf(v * 1000.0f);
    y[64 + t] = cosf(v);
    y[128 + t] = expf(v);
    y[192 + t] = logf(fabsf(v) + 1.0f);
    y[256 + t] = powf(fabsf(v) + 0.5f, 1.7f);
    y[320 + t] = erff(v);
    y[384 + t] = tanhf(v);
    y[448 + t] = sqrtf(fabsf(v));
    y[512 + t] = rsqrtf(fabsf(v) + 0.25f);
    y[576 + t] = 1.0f / (1.0f + expf(-v));
}
