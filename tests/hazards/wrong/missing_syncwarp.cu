// A warp-level reduction through shared memory that counts on lockstep.
//@ verdict race
//@ launch kernel grid 1 block 32
//@ arg x f32[32] input arange
//@ arg y f32[1] output
extern "C" __global__ void kernel(const float* x, float* y) {
    __shared__ volatile float s[32];
    int t = threadIdx.x;
    s[t] = x[t]; // CONFLICT
    if (t < 16) {
        float v = s[t + 16]; // HAZARD
        s[t] = v;
    }
    if (t == 0) y[0] = s[0];
}
