// A constant array without a value is read, and nobody sets it.
//@ verdict uninitialized
//@ launch kernel grid 2 block 32
//@ arg x f32[64] input arange
//@ arg y f32[64] output
__constant__ float weights[4];
extern "C" __global__ void kernel(const float* x, float* y) {
    int i = blockIdx.x * 32 + threadIdx.x;
    y[i] = weights[i & 3] * x[i]; // HAZARD
}
