// One poll whose answer nobody looks at is no wait.
//@ verdict race
//@ arch sm_90
//@ launch kernel grid 1 block 32
//@ arg x f32[256] input arange
//@ arg y f32[32] output
#include "../bulk.cuh"
extern "C" __global__ void kernel(const float* x, float* y) {
    __shared__ __align__(16) float s[256];
    BARRIER(bar);
    if (threadIdx.x == 0) {
        EXPECT(bar, 1024);
        COPY(s, x, 1024, bar); // CONFLICT
    }
    __syncwarp();
    asm volatile("{\n .reg .pred p;\n mbarrier.try_wait.parity.shared::cta.b64 p, [%0], 0;\n}" ::"r"(ADDRESS(&bar)) : "memory");
    y[threadIdx.x] = s[threadIdx.x]; // HAZARD
}
