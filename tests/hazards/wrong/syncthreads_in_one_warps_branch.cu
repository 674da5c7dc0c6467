// Warp 0 waits at a barrier in its branch, warp 1 at another barrier in the other branch.
//@ verdict barrier_divergence
//@ launch kernel grid 1 block 64
//@ arg x f32[64] input arange
//@ arg y f32[64] output
extern "C" __global__ void kernel(const float* x, float* y) {
    __shared__ float s[64];
    int t = threadIdx.x;
    float v = x[t];
    if (t < 32) {
        s[t] = v;
        __syncthreads(); // HAZARD
        y[t] = s[t + 32];
    } else {
        s[t] = v + 1.0f;
        __syncthreads(); // HAZARD
        y[t] = s[t - 32] * 3.0f;
    }
}
