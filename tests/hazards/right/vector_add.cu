// The first kernel of every course, with a guarded tail.
//@ launch kernel grid 4 block 64
//@ arg x f32[250] input arange
//@ arg y f32[250] input mod 13
//@ arg z f32[250] output
//@ arg n i32 250
//@ expect z = add(x, y)
extern "C" __global__ void kernel(const float* x, const float* y, float* z, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) z[i] = x[i] + y[i];
}
