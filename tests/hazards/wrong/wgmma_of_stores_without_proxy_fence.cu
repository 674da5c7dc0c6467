// A product reads tiles that ordinary stores wrote, without a proxy fence.
//@ verdict race
//@ arch sm_90a
//@ launch kernel grid 1 block 128
//@ arg a f16[4096] input mod 7
//@ arg b f16[512] input mod 5
//@ arg c f32[512] output
#include "../bulk.cuh"
#include "../warpgroup.cuh"
extern "C" __global__ void kernel(const u16* a, const u16* b, float* c) {
    TILE(sa, 4096);
    TILE(sb, 512);
    for (int i = threadIdx.x; i < 512; i += 128) {
        ((uint4*)sa)[i ^ (i / 8 % 8)] = ((const uint4*)a)[i]; // CONFLICT
        if (i < 64) ((uint4*)sb)[i ^ (i / 8 % 8)] = ((const uint4*)b)[i]; // CONFLICT
    }
    __syncthreads();
    float d[4] = {0, 0, 0, 0};
    WG_FENCE();
    MMA_64(d, sa, sb); // HAZARD
    WG_COMMIT();
    WG_WAIT(0);
    store8(c, d, 8);
}
