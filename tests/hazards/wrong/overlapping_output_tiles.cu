// Blocks own 64 outputs but step by 56: eight outputs are written by two blocks.
//@ verdict race
//@ launch kernel grid 4 block 64
//@ arg x f32[256] input arange
//@ arg y f32[232] output
extern "C" __global__ void kernel(const float* x, float* y) {
    int i = blockIdx.x * 56 + threadIdx.x;
    y[i] = x[i] + blockIdx.x; // HAZARD
}
