// The tile has two halo cells that no thread loads.
//@ verdict uninitialized
//@ launch kernel grid 2 block 64
//@ arg x f32[128] input arange
//@ arg y f32[128] output
extern "C" __global__ void kernel(const float* x, float* y) {
    __shared__ float s[66];
    int t = threadIdx.x, i = blockIdx.x * 64 + t;
    s[t + 1] = x[i];
    __syncthreads();
    float left = s[t]; // HAZARD
    float right = s[t + 2]; // HAZARD
    y[i] = left + right;
}
