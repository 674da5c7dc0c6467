// The guard admits one element too many.
//@ verdict out_of_bounds
//@ launch kernel grid 4 block 64
//@ arg x f32[250] input arange
//@ arg y f32[256] output
//@ arg n i32 250
extern "C" __global__ void kernel(const float* x, float* y, int n) {
    int i = blockIdx.x * 64 + threadIdx.x;
    float v = 0.0f;
    if (i <= n) v = x[i]; // HAZARD
    y[i] = v;
}
