// The copies are never committed to a group, so waiting for all but the last group waits for none of them.
//@ verdict race
//@ launch kernel grid 1 block 64
//@ arg x f32[256] input arange
//@ arg y f32[256] output
extern "C" __global__ void kernel(const float* x, float* y) {
    __shared__ __align__(16) float s[256];
    int t = threadIdx.x;
    unsigned to = (unsigned)__cvta_generic_to_shared(&s[4 * t]);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(x + 4 * t) : "memory"); // CONFLICT
    asm volatile("cp.async.wait_group 0;" ::: "memory");
    __syncthreads();
    for (int i = 0; i < 4; ++i) {
        float v = s[255 - 4 * t - i]; // HAZARD
        y[4 * t + i] = v;
    }
}
