// `barrier.sync` without `.aligned`, as cooperative groups have it: lanes may come by different ways.
//@ launch kernel grid 1 block 32
//@ arg x f32[32] input arange
//@ arg y f32[32] output
//@ expect y = rotate(x, 16)
extern "C" __global__ void kernel(const float* x, float* y) {
    __shared__ float s[32];
    int t = threadIdx.x;
    s[t] = x[t];
    if (t < 16) {
        asm volatile("barrier.sync 0;" ::: "memory"); // WARNING
        y[t] = s[t + 16];
    } else {
        asm volatile("barrier.sync 0;" ::: "memory"); // WARNING
        y[t] = s[t - 16];
    }
}
