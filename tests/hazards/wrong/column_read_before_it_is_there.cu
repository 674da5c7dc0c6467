// Threads read pixels before the phase of the copy was waited for.
//@ verdict race
//@ arch sm_90a
//@ launch kernel grid 1 block 64
//@ arg x f32[640] input arange
//@ arg y f32[320] output
//@ map mx x 8,5,8,2 box 8,40 lower -1,-1 upper -1,-1
#include "../bulk.cuh"
#include "../warpgroup.cuh"
extern "C" __global__ void kernel(const float* x, float* y, MAP mx) {
    __shared__ __align__(128) float s[320];
    BARRIER(bar);
    if (threadIdx.x == 0) {
        EXPECT(bar, 1280);
        LOAD_COLUMN(s, mx, -1, -1, 0, 1, 1, bar); // CONFLICT
    }
    __syncthreads();
    for (int i = threadIdx.x; i < 320; i += 64) y[i] = s[i]; // HAZARD
    WAIT(bar, 0);
}
