// The copies are committed and a barrier follows, but nobody waits for the group.
//@ verdict race
//@ launch kernel grid 1 block 64
//@ arg x f32[256] input arange
//@ arg y f32[256] output
extern "C" __global__ void kernel(const float* x, float* y) {
    __shared__ __align__(16) float s[256];
    int t = threadIdx.x;
    unsigned to = (unsigned)__cvta_generic_to_shared(&s[4 * t]);
    asm volatile("cp.async.ca.shared.global [%0], [%1], 16;" ::"r"(to), "l"(x + 4 * t) : "memory"); // CONFLICT
    asm volatile("cp.async.commit_group;" ::: "memory");
    __syncthreads();
    for (int i = 0; i < 4; ++i) {
        float v = s[255 - 4 * t - i]; // HAZARD
        y[4 * t + i] = v;
    }
}
