// A table of four coefficients in constant memory, five taps.
//@ verdict out_of_bounds
//@ launch kernel grid 1 block 32
//@ arg x f32[64] input arange
//@ arg y f32[32] output
//@ arg taps i32 5
__constant__ float weights[4] = {1.0f, 2.0f, 3.0f, 4.0f};
extern "C" __global__ void kernel(const float* x, float* y, int taps) {
    float sum = 0.0f;
    for (int i = 0; i < taps; ++i) {
        float w = weights[i]; // HAZARD
        sum += w * x[threadIdx.x + i];
    }
    y[threadIdx.x] = sum;
}
