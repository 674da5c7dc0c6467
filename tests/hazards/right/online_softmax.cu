// Online softmax of one row a warp, rescaled whenever the maximum rises.
//@ launch kernel grid 4 block 64
//@ arg x f32[1024] input normal
//@ arg y f32[1024] output
//@ tolerance 1e-5
//@ expect y = softmax(x, 128)
extern "C" __global__ void kernel(const float* x, float* y) {
    int lane = threadIdx.x % 32, row = blockIdx.x * 2 + threadIdx.x / 32;
    float m = -1e30f, l = 0.0f;
    for (int i = lane; i < 128; i += 32) {
        float v = x[row * 128 + i], next = fmaxf(m, v);
        l = l * __expf(m - next) + __expf(v - next);
        m = next;
    }
    for (int d = 16; d > 0; d /= 2) {
        float om = __shfl_xor_sync(0xffffffffu, m, d), ol = __shfl_xor_sync(0xffffffffu, l, d);
        float next = fmaxf(m, om);
        l = l * __expf(m - next) + ol * __expf(om - next);
        m = next;
    }
    for (int i = lane; i < 128; i += 32) y[row * 128 + i] = __expf(x[row * 128 + i] - m) / l;
}
