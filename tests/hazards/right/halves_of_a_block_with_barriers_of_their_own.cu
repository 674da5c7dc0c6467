// Loading and computing halves meet at barriers on different lines: it works, and is not CUDA C++.
//@ launch kernel grid 1 block 64
//@ arg x f32[128] input arange
//@ arg y f32[128] output
//@ expect y = copy(x)
extern "C" __global__ void kernel(const float* x, float* y) {
    __shared__ float s[2][64];
    int t = threadIdx.x;
    if (t < 32) {
        for (int tile = 0; tile < 2; ++tile) {
            s[tile][t] = x[tile * 64 + t];
            s[tile][t + 32] = x[tile * 64 + t + 32];
        }
        __syncthreads(); // WARNING
    } else {
        __syncthreads(); // WARNING
        for (int tile = 0; tile < 2; ++tile) {
            y[tile * 64 + t] = s[tile][t];
            y[tile * 64 + t - 32] = s[tile][t - 32];
        }
    }
}
