// A wild index far beyond every buffer.
//@ verdict out_of_bounds
//@ launch kernel grid 1 block 32
//@ arg x f32[32] input arange
//@ arg y f32[32] output
//@ arg far i64 1099511627776
extern "C" __global__ void kernel(const float* x, float* y, long long far) {
    float v = x[threadIdx.x + far]; // HAZARD
    y[threadIdx.x] = v;
}
