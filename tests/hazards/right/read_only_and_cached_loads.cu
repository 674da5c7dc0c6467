// Loads through the read-only path and with cache hints, streaming stores.
//@ launch kernel grid 1 block 64
//@ arg x f32[64] input arange
//@ arg y f32[64] output
//@ expect y = scale(x, 4)
extern "C" __global__ void kernel(const float* __restrict__ x, float* __restrict__ y) {
    int t = threadIdx.x;
    float v = __ldg(x + t) + __ldcg(x + t) + __ldcs(x + t) + __ldca(x + t);
    __stcs(y + t, v);
}
