// An optional argument that is not there is used.
//@ verdict out_of_bounds
//@ launch kernel grid 1 block 32
//@ arg bias u64 0
//@ arg y f32[32] output
extern "C" __global__ void kernel(const float* bias, float* y) {
    float v = bias[threadIdx.x]; // HAZARD
    y[threadIdx.x] = v;
}
