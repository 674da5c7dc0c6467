// A thread acquires a tensor map that it changed before it releases the change.
//@ verdict race
//@ arch sm_90a
//@ launch kernel grid 1 block 64
//@ arg x f32[2048] input arange
//@ arg y f32[2048] output
//@ map mx x 32,64 box 32,8
//@ arg own f32[64] scratch
#include "../bulk.cuh"
#include "../warpgroup.cuh"
extern "C" __global__ void kernel(const float* x, float* y, MAP mx, u64* own) {
    __shared__ __align__(128) float s[256];
    CUtensorMap* mine = (CUtensorMap*)own;
    BARRIER(bar);
    if (threadIdx.x < 16) own[threadIdx.x] = mx.opaque[threadIdx.x];
    __syncthreads();
    if (threadIdx.x == 0) {
        MAP_ADDRESS(mine, x + 256); // CONFLICT
        MAP_ACQUIRE(mine);
        MAP_RELEASE();
        EXPECT(bar, 1024);
        LOAD_BOX(s, *mine, 0, 0, bar); // HAZARD
    }
    WAIT(bar, 0);
    for (int i = threadIdx.x; i < 256; i += 64) y[i] = s[i];
}
