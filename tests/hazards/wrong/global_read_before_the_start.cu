// A negative index: the left neighbour of element 0.
//@ verdict out_of_bounds
//@ launch kernel grid 2 block 64
//@ arg x f32[128] input arange
//@ arg y f32[128] output
extern "C" __global__ void kernel(const float* x, float* y) {
    int i = blockIdx.x * 64 + threadIdx.x;
    float left = x[i - 1]; // HAZARD
    y[i] = left;
}
