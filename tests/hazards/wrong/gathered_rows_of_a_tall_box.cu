// Rows are gathered with a map whose box has four rows.
//@ verdict crashed
//@ arch sm_100a
//@ launch kernel grid 1 block 64
//@ arg x f32[1024] input arange
//@ arg y f32[128] output
//@ map mx x 64,16 box 32,4
#include "../bulk.cuh"
#include "../warpgroup.cuh"
extern "C" __global__ void kernel(const float* x, float* y, MAP mx) {
    __shared__ __align__(128) float s[128];
    BARRIER(bar);
    if (threadIdx.x == 0) {
        EXPECT(bar, 512);
        GATHER(s, mx, 0, 1, 3, 5, 7, bar); // HAZARD
    }
    WAIT(bar, 0);
    for (int i = threadIdx.x; i < 128; i += 64) y[i] = 1;
}
