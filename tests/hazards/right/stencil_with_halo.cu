// A five-point stencil whose halo is loaded by the first threads and zero outside.
//@ launch kernel grid 4 block 64
//@ arg x f32[256] input mod 10
//@ arg y f32[256] output
//@ arg n i32 256
//@ expect y = window_sum(x, 2)
extern "C" __global__ void kernel(const float* x, float* y, int n) {
    __shared__ float s[68];
    int t = threadIdx.x, i = blockIdx.x * 64 + t;
    s[t + 2] = x[i];
    if (t < 2) {
        s[t] = i >= 2 ? x[i - 2] : 0.0f;
        s[t + 66] = i + 64 < n ? x[i + 64] : 0.0f;
    }
    __syncthreads();
    float sum = 0.0f;
    for (int k = 0; k < 5; ++k) sum += s[t + k];
    y[i] = sum;
}
