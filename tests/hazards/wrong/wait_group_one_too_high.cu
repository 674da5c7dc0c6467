// Two cp.async stages in flight: the wait lets the group that is about to be used stay in flight.
//@ verdict race
//@ launch kernel grid 1 block 64
//@ arg x f32[1024] input arange
//@ arg y f32[256] output
__device__ void copy16(float* to, const float* from) {
    unsigned s = (unsigned)__cvta_generic_to_shared(to);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(s), "l"(from) : "memory"); // HAZARD
}
extern "C" __global__ void kernel(const float* x, float* y) {
    __shared__ __align__(16) float stage[2][256];
    int t = threadIdx.x;
    float sum[4] = {};
    copy16(&stage[0][4 * t], x + 4 * t);
    asm volatile("cp.async.commit_group;" ::: "memory");
    for (int i = 0; i < 4; ++i) {
        if (i + 1 < 4) copy16(&stage[(i + 1) % 2][4 * t], x + (i + 1) * 256 + 4 * t);
        asm volatile("cp.async.commit_group;" ::: "memory");
        asm volatile("cp.async.wait_group 2;" ::: "memory");
        __syncthreads();
        for (int k = 0; k < 4; ++k) sum[k] += stage[i % 2][(4 * t + k + 4) % 256]; // HAZARD
        __syncthreads();
    }
    for (int k = 0; k < 4; ++k) y[4 * t + k] = sum[k];
}
