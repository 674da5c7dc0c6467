// Bulk copies move 16-byte aligned addresses; this one starts four bytes in.
//@ verdict misaligned
//@ also deadlock
//@ arch sm_90
//@ launch kernel grid 1 block 32
//@ arg x f32[260] input arange
//@ arg y f32[256] output
#include "../bulk.cuh"
extern "C" __global__ void kernel(const float* x, float* y) {
    __shared__ __align__(16) float s[256];
    BARRIER(bar);
    if (threadIdx.x == 0) {
        EXPECT(bar, 1024);
        COPY(s, x + 1, 1024, bar); // HAZARD
    }
    WAIT(bar, 0);
    for (int i = threadIdx.x; i < 256; i += 32) y[i] = s[i];
}
