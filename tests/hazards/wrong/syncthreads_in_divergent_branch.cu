// Only the lower half of each warp reaches the barrier inside the branch; the others wait at the one behind it.
//@ verdict barrier_divergence
//@ launch kernel grid 1 block 64
//@ arg x f32[64] input arange
//@ arg y f32[64] output
extern "C" __global__ void kernel(const float* x, float* y) {
    __shared__ float s[64], doubled[64];
    int t = threadIdx.x;
    s[t] = x[t];
    doubled[t] = 0.0f;
    __syncthreads();
    float v = s[63 - t];
    if ((t & 31) < 16) {
        doubled[t] = v * 2.0f;
        __syncthreads(); // HAZARD
        v = doubled[t ^ 1];
    }
    __syncthreads(); // HAZARD
    y[t] = v + s[t];
}
