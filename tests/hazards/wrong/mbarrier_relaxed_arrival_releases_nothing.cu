// A relaxed arrival does not publish what the thread stored before.
//@ verdict race
//@ arch sm_90
//@ launch kernel grid 1 block 64
//@ arg x f32[64] input arange
//@ arg y f32[64] output
#include "../bulk.cuh"
extern "C" __global__ void kernel(const float* x, float* y) {
    __shared__ float s[64];
    __shared__ __align__(8) unsigned long long bar;
    if (threadIdx.x == 0) asm volatile("mbarrier.init.shared::cta.b64 [%0], 64;" ::"r"(ADDRESS(&bar)) : "memory");
    __syncthreads();
    s[threadIdx.x] = x[threadIdx.x]; // CONFLICT
    asm volatile("mbarrier.arrive.relaxed.cta.shared::cta.b64 _, [%0];" ::"r"(ADDRESS(&bar)) : "memory");
    WAIT(bar, 0);
    y[threadIdx.x] = s[63 - threadIdx.x]; // HAZARD
}
