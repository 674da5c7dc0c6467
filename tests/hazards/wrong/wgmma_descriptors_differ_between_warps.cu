// All four warps of a warp-group must name the same matrices.
//@ verdict crashed
//@ arch sm_90a
//@ launch kernel grid 1 block 128
//@ arg a f16[4096] input mod 7
//@ arg b f16[2048] input mod 5
//@ arg c f32[512] output
#include "../bulk.cuh"
#include "../warpgroup.cuh"
extern "C" __global__ void kernel(const u16* a, const u16* b, float* c) {
    TILE(sa, 4096);
    TILE(sb, 2048);
    for (int i = threadIdx.x; i < 512; i += 128) {
        ((uint4*)sa)[i ^ (i / 8 % 8)] = ((const uint4*)a)[i];
        if (i < 256) ((uint4*)sb)[i ^ (i / 8 % 8)] = ((const uint4*)b)[i];
    }
    FENCE_ASYNC();
    __syncthreads();
    float d[4] = {0, 0, 0, 0};
    WG_FENCE();
    const u16* own = sb + threadIdx.x / 32 * 512;
    MMA_64(d, sa, own); // HAZARD
    WG_COMMIT();
    WG_WAIT(0);
    store8(c, d, 8);
}
