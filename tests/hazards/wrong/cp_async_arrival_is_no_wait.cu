// `cp.async.mbarrier.arrive` lets the barrier count the copies; the thread itself has not waited.
//@ verdict race
//@ arch sm_90
//@ launch kernel grid 1 block 64
//@ arg x f32[256] input arange
//@ arg y f32[256] output
#include "../bulk.cuh"
extern "C" __global__ void kernel(const float* x, float* y) {
    __shared__ __align__(16) float s[256];
    __shared__ __align__(8) unsigned long long bar;
    int t = threadIdx.x;
    if (t == 0) asm volatile("mbarrier.init.shared::cta.b64 [%0], 64;" ::"r"(ADDRESS(&bar)) : "memory");
    __syncthreads();
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(ADDRESS(s + 4 * t)), "l"(x + 4 * t) : "memory"); // CONFLICT
    asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(ADDRESS(&bar)) : "memory");
    for (int i = 0; i < 4; ++i) y[4 * t + i] = s[4 * t + i]; // HAZARD
    WAIT(bar, 0);
}
