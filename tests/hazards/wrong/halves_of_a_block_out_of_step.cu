// Two halves of a block with barriers of their own, one of which comes before its half has stored.
//@ verdict race
//@ also uninitialized
//@ launch kernel grid 1 block 64
//@ arg x f32[64] input arange
//@ arg y f32[64] output
extern "C" __global__ void kernel(const float* x, float* y) {
    __shared__ float s[64];
    int t = threadIdx.x;
    if (t < 32) {
        s[t] = x[t];
        __syncthreads();
        y[t] = s[t + 32]; // HAZARD
    } else {
        __syncthreads();
        s[t] = x[t] + 1.0f; // HAZARD
        y[t] = s[t - 32] * 3.0f;
    }
}
