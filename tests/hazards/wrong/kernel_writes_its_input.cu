// The input is normalised in place on the way.
//@ verdict incorrect
//@ launch kernel grid 1 block 64
//@ arg x f32[64] input arange
//@ arg y f32[64] output
extern "C" __global__ void kernel(float* x, float* y) {
    int t = threadIdx.x;
    float v = x[t] * 0.5f;
    x[t] = v;
    y[t] = v;
}
