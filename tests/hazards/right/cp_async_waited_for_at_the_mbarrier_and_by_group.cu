// Copies that an mbarrier counts are visible to who waits for it, and to their thread by its group.
//@ arch sm_90
//@ launch kernel grid 1 block 64
//@ arg x f32[256] input arange
//@ arg y f32[256] output
//@ expect y = copy(x)
#include "../bulk.cuh"
extern "C" __global__ void kernel(const float* x, float* y) {
    __shared__ __align__(16) float s[256];
    __shared__ __align__(8) unsigned long long bar;
    int t = threadIdx.x;
    if (t == 0) asm volatile("mbarrier.init.shared::cta.b64 [%0], 64;" ::"r"(ADDRESS(&bar)) : "memory");
    __syncthreads();
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(ADDRESS(s + 4 * t)), "l"(x + 4 * t) : "memory");
    asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(ADDRESS(&bar)) : "memory");
    asm volatile("cp.async.wait_all;" ::: "memory");
    y[4 * t] = s[4 * t];
    WAIT(bar, 0);
    int o = 4 * (63 - t);
    for (int i = 1; i < 4; ++i) y[o + i] = s[o + i];
}
