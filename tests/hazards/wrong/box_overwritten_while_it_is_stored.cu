// The next box overwrites one that is being copied out.
//@ verdict race
//@ arch sm_90a
//@ launch kernel grid 1 block 128
//@ arg x f32[2048] input arange
//@ arg y f32[2048] output
//@ map mx x 64,32 box 32,32
//@ map my y 64,32 box 32,32
#include "../bulk.cuh"
#include "../warpgroup.cuh"
extern "C" __global__ void kernel(const float* x, float* y, MAP mx, MAP my) {
    __shared__ __align__(128) float s[1024];
    BARRIER(bar);
    for (int half = 0; half < 2; ++half) {
        if (threadIdx.x == 0) {
            EXPECT(bar, 4096);
            LOAD_BOX(s, mx, half * 32, 0, bar); // HAZARD
        }
        WAIT_FOR(bar, half);
        FENCE_ASYNC();
        __syncthreads();
        if (threadIdx.x == 0) {
            STORE_BOX(s, my, half * 32, 0); // CONFLICT
            STORE_COMMIT();
        }
        __syncthreads();
    }
}
