// A tile of dynamic shared memory reaches into the barrier that lies behind it.
//@ verdict crashed
//@ arch sm_90
//@ launch kernel grid 1 block 64 shared 264
//@ arg x f32[64] input arange
//@ arg y f32[64] output
#include "../bulk.cuh"
extern "C" __global__ void kernel(const float* x, float* y) {
    extern __shared__ __align__(16) float s[];
    unsigned long long* bar = (unsigned long long*)(s + 62);
    if (threadIdx.x == 0) asm volatile("mbarrier.init.shared::cta.b64 [%0], 64;" ::"r"(ADDRESS(bar)) : "memory");
    __syncthreads();
    s[threadIdx.x] = x[threadIdx.x]; // CONFLICT
    __syncthreads();
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(ADDRESS(bar)) : "memory"); // HAZARD
    WAIT(bar[0], 0);
    if (threadIdx.x < 62) y[threadIdx.x] = s[threadIdx.x];
    else y[threadIdx.x] = 0;
}
