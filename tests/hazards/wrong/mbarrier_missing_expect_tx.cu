// The barrier expects no bytes, so its phase ends with the arrival and not with the copy.
//@ verdict race
//@ arch sm_90
//@ launch kernel grid 1 block 32
//@ arg x f32[256] input arange
//@ arg y f32[256] output
#include "../bulk.cuh"
extern "C" __global__ void kernel(const float* x, float* y) {
    __shared__ __align__(16) float s[256];
    BARRIER(bar);
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(ADDRESS(&bar)) : "memory");
        COPY(s, x, 1024, bar); // CONFLICT
    }
    WAIT(bar, 0);
    for (int i = threadIdx.x; i < 256; i += 32) y[i] = s[i]; // HAZARD
}
