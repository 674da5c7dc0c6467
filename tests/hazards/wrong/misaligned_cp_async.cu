// A 16-byte cp.async out of a row that starts eight bytes into its segment.
//@ verdict misaligned
//@ launch kernel grid 1 block 16
//@ arg x f32[80] input arange
//@ arg y f32[64] output
extern "C" __global__ void kernel(const float* x, float* y) {
    __shared__ __align__(16) float s[64];
    int t = threadIdx.x;
    unsigned to = (unsigned)__cvta_generic_to_shared(&s[4 * t]);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(x + 4 * t + 2) : "memory"); // HAZARD
    asm volatile("cp.async.wait_all;" ::: "memory");
    __syncthreads();
    for (int i = 0; i < 4; ++i) y[4 * t + i] = s[4 * t + i];
}
