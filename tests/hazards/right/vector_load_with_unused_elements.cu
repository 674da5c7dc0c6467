// Three values are read with a vector load of four, as compilers widen them: the fourth is past the
// end of the array, or was never written, and nobody uses it.
//@ launch kernel grid 1 block 8 shared 124
//@ arg x f32[31] input arange
//@ arg y f32[8] output
//@ expect y = constant(1)
extern "C" __global__ void kernel(const float* x, float* y) {
    extern __shared__ __align__(16) float s[];
    int t = threadIdx.x;
    for (int i = 0; i < 3; ++i) s[4 * t + i] = x[4 * t + i];
    __syncthreads();
    float a, b, c, unused;
    asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(a), "=f"(b), "=f"(c), "=f"(unused)
                 : "r"((unsigned)__cvta_generic_to_shared(s + 4 * t)));
    float p, q, r, beyond;
    asm volatile("ld.global.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(p), "=f"(q), "=f"(r), "=f"(beyond)
                 : "l"(x + 4 * t));
    y[t] = (a == p && b == q && c == r) ? b - a : -1.0f;
}
