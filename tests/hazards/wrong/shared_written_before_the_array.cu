// The last of the written elements ends where the shared array begins.
//@ verdict out_of_bounds
//@ launch kernel grid 1 block 32
//@ arg x f32[32] input arange
//@ arg y f32[32] output
extern "C" __global__ void kernel(const float* x, float* y) {
    __shared__ float s[64];
    s[threadIdx.x + 32] = s[threadIdx.x] = x[threadIdx.x];
    s[(int)threadIdx.x - 32] = x[threadIdx.x]; // HAZARD
    __syncthreads();
    y[threadIdx.x] = s[threadIdx.x + 32] + s[threadIdx.x];
}
