// The stride is the block instead of the grid: all blocks write all elements.
//@ verdict race
//@ launch kernel grid 2 block 64
//@ arg x f32[256] input arange
//@ arg y f32[256] output
//@ arg n i32 256
extern "C" __global__ void kernel(const float* x, float* y, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x) {
        float v = x[i] * 2.0f;
        y[i] = v; // HAZARD
    }
}
