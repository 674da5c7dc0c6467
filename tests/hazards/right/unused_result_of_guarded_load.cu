// Loads guarded lane by lane: only lanes inside the buffer touch it.
//@ launch kernel grid 1 block 64
//@ arg x f32[37] input arange
//@ arg y f32[64] output
//@ arg n i32 37
//@ expect y = padded(x)
extern "C" __global__ void kernel(const float* x, float* y, int n) {
    int t = threadIdx.x;
    y[t] = t < n ? x[t] : 0.0f;
}
