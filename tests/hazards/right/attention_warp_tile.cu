// Scores and output of one attention row a thread in two passes, K and V in shared memory.
//@ launch kernel grid 2 block 32
//@ arg q f32[512] input normal
//@ arg k f32[512] input normal
//@ arg v f32[512] input normal
//@ arg o f32[512] output
//@ tolerance 1e-5
//@ expect o = attention(q, k, v, 8)
extern "C" __global__ void kernel(const float* q, const float* k, const float* v, float* o) {
    __shared__ float ks[64 * 9], vs[64 * 9];
    int t = threadIdx.x, row = blockIdx.x * 32 + t;
    for (int i = t; i < 512; i += 32) {
        ks[i / 8 * 9 + i % 8] = k[i];
        vs[i / 8 * 9 + i % 8] = v[i];
    }
    __syncthreads();
    float m = -1e30f, l = 0.0f, acc[8] = {};
    for (int j = 0; j < 64; ++j) {
        float s = 0.0f;
        for (int d = 0; d < 8; ++d) s += q[row * 8 + d] * ks[j * 9 + d];
        float next = fmaxf(m, s), scale = expf(m - next), p = expf(s - next);
        l = l * scale + p;
        for (int d = 0; d < 8; ++d) acc[d] = acc[d] * scale + p * vs[j * 9 + d];
        m = next;
    }
    for (int d = 0; d < 8; ++d) o[row * 8 + d] = acc[d] / l;
}
