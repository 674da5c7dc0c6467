// The barrier waits for twice as many bytes as the copy brings.
//@ verdict deadlock
//@ arch sm_90
//@ launch kernel grid 1 block 32
//@ arg x f32[256] input arange
//@ arg y f32[256] output
#include "../bulk.cuh"
extern "C" __global__ void kernel(const float* x, float* y) {
    __shared__ __align__(16) float s[256];
    BARRIER(bar);
    if (threadIdx.x == 0) {
        EXPECT(bar, 2048);
        COPY(s, x, 1024, bar);
    }
    unsigned done = 0;
    while (!done) {
        asm volatile("{\n .reg .pred p;\n mbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0;\n selp.u32 %0, 1, 0, p;\n}" : "=r"(done) : "r"(ADDRESS(&bar)) : "memory"); // HAZARD
    }
    for (int i = threadIdx.x; i < 256; i += 32) y[i] = s[i];
}
