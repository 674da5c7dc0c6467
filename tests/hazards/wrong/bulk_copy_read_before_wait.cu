// The tile is read after the copy was started, without waiting for its mbarrier.
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
        EXPECT(bar, 1024);
        COPY(s, x, 1024, bar); // CONFLICT
    }
    __syncthreads();
    for (int i = threadIdx.x; i < 256; i += 32) y[i] = s[i]; // HAZARD
    WAIT(bar, 0);
}
