// A pipeline of three stages whose prologue fills one; the second step reads a stage nobody filled.
//@ verdict uninitialized
//@ launch kernel grid 1 block 64
//@ arg x f32[512] input arange
//@ arg y f32[64] output
extern "C" __global__ void kernel(const float* x, float* y) {
    __shared__ float stage[3][64];
    int t = threadIdx.x;
    float sum = 0.0f;
    stage[0][t] = x[t];
    for (int i = 0; i < 6; ++i) {
        if (i + 2 < 8) stage[(i + 2) % 3][t] = x[(i + 2) * 64 + t];
        __syncthreads();
        float v = stage[i % 3][63 - t]; // HAZARD
        sum += v;
        __syncthreads();
    }
    y[t] = sum;
}
