// Warp 0 waits at a barrier in its branch, warp 1 at another one in the other: PTX, but not CUDA C++.
//@ launch kernel grid 1 block 64
//@ arg x f32[64] input arange
//@ arg y f32[64] output
//@ expect y = rotate(x, 32)
extern "C" __global__ void kernel(const float* x, float* y) {
    __shared__ float s[64];
    int t = threadIdx.x;
    float v = x[t];
    if (t < 32) {
        s[t] = v;
        __syncthreads(); // WARNING
        y[t] = s[t + 32];
    } else {
        s[t] = v * 1.0f;
        __syncthreads(); // WARNING
        y[t] = s[t - 32];
    }
}
