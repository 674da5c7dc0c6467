// A thread reads through the read-only cache what it has just stored.
//@ verdict race
//@ launch kernel grid 2 block 64
//@ arg x f32[128] input arange
//@ arg s f32[128] scratch
//@ arg y f32[128] output
extern "C" __global__ void kernel(const float* x, float* s, float* y) {
    int i = blockIdx.x * 64 + threadIdx.x;
    s[i] = x[i] * 2.0f; // CONFLICT
    y[i] = __ldg(&s[i]); // HAZARD
}
