// The last arrival of a phase must not be `.noComplete`.
//@ verdict crashed
//@ arch sm_90
//@ launch kernel grid 1 block 32
//@ arg x f32[32] input arange
//@ arg y f32[32] output
#include "../bulk.cuh"
extern "C" __global__ void kernel(const float* x, float* y) {
    __shared__ __align__(8) unsigned long long bar;
    unsigned long long state;
    if (threadIdx.x == 0) asm volatile("mbarrier.init.shared::cta.b64 [%0], 32;" ::"r"(ADDRESS(&bar)) : "memory");
    __syncthreads();
    asm volatile("mbarrier.arrive.noComplete.release.cta.shared::cta.b64 %0, [%1], 1;" : "=l"(state) : "r"(ADDRESS(&bar)) : "memory"); // HAZARD
    WAIT(bar, 0);
    y[threadIdx.x] = x[threadIdx.x];
}
