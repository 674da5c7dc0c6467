// Half of the threads wait for the copy; the others read it later, but never waited for it.
//@ verdict race
//@ arch sm_90
//@ launch kernel grid 1 block 64
//@ arg x f32[256] input arange
//@ arg y f32[64] output
#include "../bulk.cuh"
extern "C" __global__ void kernel(const float* x, float* y) {
    __shared__ __align__(16) float s[256];
    BARRIER(bar);
    if (threadIdx.x == 0) {
        EXPECT(bar, 1024);
        COPY(s, x, 1024, bar); // CONFLICT
    }
    __syncthreads();
    if (threadIdx.x < 32) {
        WAIT(bar, 0);
    } else {
        unsigned until = 0, now;
        for (int i = 0; i < 20000; ++i) {
            asm volatile("mov.u32 %0, %%clock;" : "=r"(now));
            until += now & 1;
        }
        if (until == 1) y[0] = 0;
    }
    y[threadIdx.x] = s[threadIdx.x]; // HAZARD
}
