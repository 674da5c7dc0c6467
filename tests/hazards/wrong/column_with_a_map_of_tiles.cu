// A column of pixels is asked of a map of boxes.
//@ verdict crashed
//@ arch sm_90a
//@ launch kernel grid 1 block 64
//@ arg x f32[640] input arange
//@ arg y f32[320] output
//@ map mx x 8,5,8,2 box 8,5,8,1
#include "../bulk.cuh"
#include "../warpgroup.cuh"
extern "C" __global__ void kernel(const float* x, float* y, MAP mx) {
    __shared__ __align__(128) float s[320];
    BARRIER(bar);
    if (threadIdx.x == 0) {
        EXPECT(bar, 1280);
        LOAD_COLUMN(s, mx, 0, 0, 0, 0, 0, bar); // HAZARD
    }
    WAIT(bar, 0);
    for (int i = threadIdx.x; i < 320; i += 64) y[i] = 1;
}
