// Online softmax of one row a thread: the running sum is not rescaled when the maximum rises.
//@ verdict incorrect
//@ launch kernel grid 1 block 32
//@ arg x f32[2048] input normal
//@ arg y f32[2048] output
//@ expect y = softmax(x, 64)
extern "C" __global__ void kernel(const float* x, float* y) {
    const float* row = x + threadIdx.x * 64;
    float m = -1e30f, l = 0.0f;
    for (int i = 0; i < 64; ++i) {
        m = fmaxf(m, row[i]);
        l += expf(row[i] - m);
    }
    for (int i = 0; i < 64; ++i) y[threadIdx.x * 64 + i] = expf(row[i] - m) / l;
}
