// Every seventh output is skipped.
//@ verdict incorrect
//@ launch kernel grid 1 block 64
//@ arg x f32[64] input arange
//@ arg y f32[64] output
extern "C" __global__ void kernel(const float* x, float* y) {
    int t = threadIdx.x;
    if (t % 7 != 6) y[t] = x[t];
}
