// The output is accumulated into, although nobody set it to zero.
//@ verdict uninitialized
//@ launch kernel grid 1 block 64
//@ arg x f32[64] input arange
//@ arg y f32[64] output
extern "C" __global__ void kernel(const float* x, float* y) {
    int t = threadIdx.x;
    y[t] += x[t]; // HAZARD
}
