// A tree reduction whose loop has no barrier between its levels.
//@ verdict race
//@ launch kernel grid 1 block 128
//@ arg x f32[128] input arange
//@ arg y f32[1] output
extern "C" __global__ void kernel(const float* x, float* y) {
    __shared__ float s[128];
    int t = threadIdx.x;
    s[t] = x[t];
    __syncthreads();
    for (int d = 64; d > 0; d /= 2) {
        if (t < d) s[t] += s[t + d]; // HAZARD
    }
    __syncthreads();
    if (t == 0) y[0] = s[0];
}
