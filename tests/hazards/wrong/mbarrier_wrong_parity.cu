// The wait asks for the wrong phase: it ends at once, or never if the copy was faster.
//@ verdict deadlock|race
//@ arch sm_90
//@ launch kernel grid 1 block 32
//@ arg x f32[256] input arange
//@ arg y f32[256] output
#include "../bulk.cuh"
extern "C" __global__ void kernel(const float* x, float* y) {
    __shared__ __align__(16) float s[256];
    BARRIER(bar);
    if (threadIdx.x == 0) {
        EXPECT(bar, 1024);
        COPY(s, x, 1024, bar); // CONFLICT
    }
    WAIT(bar, 1); // HAZARD
    for (int i = threadIdx.x; i < 256; i += 32) y[i] = s[i]; // HAZARD
}
