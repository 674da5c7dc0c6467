// The last bulk copy brings a whole tile although only half of one is left.
//@ verdict out_of_bounds
//@ also uninitialized deadlock
//@ arch sm_90
//@ launch kernel grid 2 block 32
//@ arg x f32[384] input arange
//@ arg y f32[512] output
#include "../bulk.cuh"
extern "C" __global__ void kernel(const float* x, float* y) {
    __shared__ __align__(16) float s[256];
    BARRIER(bar);
    if (threadIdx.x == 0) {
        EXPECT(bar, 1024);
        COPY(s, x + blockIdx.x * 256, 1024, bar); // HAZARD
    }
    WAIT(bar, 0);
    for (int i = threadIdx.x; i < 256; i += 32) y[blockIdx.x * 256 + i] = s[i];
}
