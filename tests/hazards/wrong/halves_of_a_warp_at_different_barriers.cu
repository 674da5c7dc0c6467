// The lanes of one warp wait at two __syncthreads, of which PTX wants all lanes of a warp at one.
//@ verdict barrier_divergence
//@ launch kernel grid 1 block 32
//@ arg x f32[32] input arange
//@ arg y f32[32] output
extern "C" __global__ void kernel(const float* x, float* y) {
    __shared__ float s[32];
    int t = threadIdx.x;
    s[t] = x[t];
    if (t < 16) {
        __syncthreads(); // HAZARD
        y[t] = s[t + 16];
    } else {
        __syncthreads(); // HAZARD
        y[t] = s[t - 16] * 3.0f;
    }
}
