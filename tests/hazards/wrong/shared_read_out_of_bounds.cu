// The reversed index misses a minus one.
//@ verdict out_of_bounds
//@ launch kernel grid 1 block 64
//@ arg x f32[64] input arange
//@ arg y f32[64] output
extern "C" __global__ void kernel(const float* x, float* y) {
    __shared__ float s[64];
    int t = threadIdx.x;
    s[t] = x[t];
    __syncthreads();
    float v = s[64 - t]; // HAZARD
    y[t] = v;
}
