// Coefficients in constant memory, indexed by a loop and by a value.
//@ launch kernel grid 1 block 32
//@ arg x f32[35] input constant 1
//@ arg y f32[32] output
//@ arg taps i32 4
//@ expect y = constant(10)
__constant__ float weights[4] = {1.0f, 2.0f, 3.0f, 4.0f};
extern "C" __global__ void kernel(const float* x, float* y, int taps) {
    float sum = 0.0f;
    for (int i = 0; i < taps; ++i) sum += weights[i] * x[threadIdx.x + i];
    y[threadIdx.x] = sum;
}
