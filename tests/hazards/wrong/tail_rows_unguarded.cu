// Blocks of 32 rows over 80 rows: the last block writes 16 rows too many.
//@ verdict out_of_bounds
//@ launch kernel grid 3 block 32
//@ arg x f32[640] input arange
//@ arg y f32[640] output
//@ arg rows i32 80
extern "C" __global__ void kernel(const float* x, float* y, int rows) {
    int row = blockIdx.x * 32 + threadIdx.x;
    for (int c = 0; c < 8; ++c) {
        float v = row < rows ? x[row * 8 + c] : 0.0f;
        y[row * 8 + c] = 2.0f * v; // HAZARD
    }
}
