// The tail of a row is filled with zeros by the source size operand of cp.async.
//@ launch kernel grid 1 block 16
//@ arg x f32[58] input arange
//@ arg y f32[64] output
//@ arg n i32 58
//@ expect y = padded(x)
extern "C" __global__ void kernel(const float* x, float* y, int n) {
    __shared__ __align__(16) float s[64];
    int t = threadIdx.x;
    int left = n - 4 * t;
    int bytes = left >= 4 ? 16 : (left > 0 ? 4 * left : 0);
    const float* from = left > 0 ? x + 4 * t : x;
    unsigned to = (unsigned)__cvta_generic_to_shared(&s[4 * t]);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
    asm volatile("cp.async.wait_all;" ::: "memory");
    __syncthreads();
    for (int i = 0; i < 4; ++i) y[t + 16 * i] = s[t + 16 * i];
}
