// A function takes as constant and unaliased what its caller has just written.
//@ verdict race
//@ launch kernel grid 1 block 64
//@ arg x f32[64] input arange
//@ arg y f32[64] inout zeros
static __device__ __forceinline__ float cached(const float* p) {
    float v;
    asm volatile("ld.global.nc.f32 %0, [%1];" : "=f"(v) : "l"(p)); // HAZARD
    return v;
}
extern "C" __global__ void kernel(const float* x, float* y) {
    int t = threadIdx.x;
    y[t] = x[t] + 1.0f; // CONFLICT
    y[t] = cached(y + t) * 2.0f;
}
