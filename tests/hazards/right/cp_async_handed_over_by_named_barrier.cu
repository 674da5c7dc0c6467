// One warp copies and waits, the other takes over through a named barrier.
//@ launch kernel grid 1 block 64
//@ arg x f32[128] input arange
//@ arg y f32[128] output
//@ expect y = reverse_blocks(x, 128)
extern "C" __global__ void kernel(const float* x, float* y) {
    __shared__ __align__(16) float s[128];
    int t = threadIdx.x;
    if (t < 32) {
        unsigned to = (unsigned)__cvta_generic_to_shared(&s[4 * t]);
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(x + 4 * t) : "memory");
        asm volatile("cp.async.wait_all;" ::: "memory");
        asm volatile("bar.arrive 4, 64;" ::: "memory");
    } else {
        asm volatile("bar.sync 4, 64;" ::: "memory");
        for (int i = t - 32; i < 128; i += 32) y[i] = s[127 - i];
    }
}
