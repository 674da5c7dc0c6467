// A thread reads only the words it copied itself: the wait alone is enough.
//@ launch kernel grid 2 block 64
//@ arg x f32[512] input arange
//@ arg y f32[512] output
//@ expect y = scale(x, 2)
extern "C" __global__ void kernel(const float* x, float* y) {
    __shared__ __align__(16) float s[256];
    int t = threadIdx.x, base = blockIdx.x * 256;
    unsigned to = (unsigned)__cvta_generic_to_shared(&s[4 * t]);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(x + base + 4 * t) : "memory");
    asm volatile("cp.async.commit_group;" ::: "memory");
    asm volatile("cp.async.wait_group 0;" ::: "memory");
    for (int i = 0; i < 4; ++i) y[base + 4 * t + i] = 2.0f * s[4 * t + i];
}
