// A grid-stride loop over a length that is no multiple of anything.
//@ launch kernel grid 3 block 96
//@ arg x f32[1013] input arange
//@ arg y f32[1013] output
//@ arg n i32 1013
//@ expect y = scale(x, 2)
extern "C" __global__ void kernel(const float* x, float* y, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) y[i] = 2.0f * x[i];
}
