// Floor division of the grid: the last 44 outputs have no thread.
//@ verdict incorrect
//@ launch kernel grid 3 block 64
//@ arg x f32[236] input arange
//@ arg y f32[236] output
//@ arg n i32 236
//@ expect y = scale(x, 2)
extern "C" __global__ void kernel(const float* x, float* y, int n) {
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i < n) y[i] = 2.0f * x[i];
}
