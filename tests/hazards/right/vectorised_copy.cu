// float4 loads and stores with a scalar tail.
//@ launch kernel grid 1 block 32
//@ arg x f32[130] input arange
//@ arg y f32[130] output
//@ arg n i32 130
//@ expect y = scale(x, 2)
extern "C" __global__ void kernel(const float* x, float* y, int n) {
    int t = threadIdx.x;
    if (t < n / 4) {
        float4 v = ((const float4*)x)[t];
        ((float4*)y)[t] = make_float4(2 * v.x, 2 * v.y, 2 * v.z, 2 * v.w);
    }
    int i = n / 4 * 4 + t;
    if (i < n) y[i] = 2 * x[i];
}
