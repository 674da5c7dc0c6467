// Three cp.async stages in flight, wait and barrier at the head, one barrier a step.
//@ launch kernel grid 1 block 64
//@ arg x f32[2048] input mod 31
//@ arg y f32[256] output
//@ expect y = column_sum(x, 256)
__device__ void copy16(float* to, const float* from) {
    unsigned s = (unsigned)__cvta_generic_to_shared(to);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(s), "l"(from) : "memory");
}
extern "C" __global__ void kernel(const float* x, float* y) {
    __shared__ __align__(16) float stage[3][256];
    int t = threadIdx.x;
    float sum[4] = {};
    for (int i = 0; i < 2; ++i) {
        copy16(&stage[i][4 * t], x + i * 256 + 4 * t);
        asm volatile("cp.async.commit_group;" ::: "memory");
    }
    for (int i = 0; i < 8; ++i) {
        asm volatile("cp.async.wait_group 1;" ::: "memory");
        __syncthreads();
        if (i + 2 < 8) copy16(&stage[(i + 2) % 3][4 * t], x + (i + 2) * 256 + 4 * t);
        asm volatile("cp.async.commit_group;" ::: "memory");
        for (int k = 0; k < 4; ++k) sum[k] += stage[i % 3][t + 64 * k];
    }
    for (int k = 0; k < 4; ++k) y[t + 64 * k] = sum[k];
}
