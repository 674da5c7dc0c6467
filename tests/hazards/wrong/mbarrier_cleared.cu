// Shared memory is cleared up to and with a barrier that was initialised before.
//@ verdict crashed
//@ arch sm_100a
//@ launch kernel grid 1 block 64
//@ arg x f32[64] input arange
//@ arg y f32[64] output
#include "../bulk.cuh"
#include "../warpgroup.cuh"
extern "C" __global__ void kernel(const float* x, float* y) {
    __shared__ __align__(16) u64 words[4];
    u64* bar = words + 3;
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 64;" ::"r"(ADDRESS(bar)) : "memory");
        CLEAR(words, sizeof words); // CONFLICT
    }
    __syncthreads();
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(ADDRESS(bar)) : "memory"); // HAZARD
    WAIT(bar[0], 0);
    y[threadIdx.x] = x[threadIdx.x];
}
