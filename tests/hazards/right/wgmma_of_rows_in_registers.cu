// A comes from registers.
//@ arch sm_90a
//@ launch kernel grid 1 block 128
//@ arg a f16[4096] input mod 7
//@ arg b f16[512] input mod 5
//@ arg c f32[512] output
//@ expect c = gemm_nt(a, b, 64, 8, 64)
#include "../bulk.cuh"
#include "../warpgroup.cuh"
extern "C" __global__ void kernel(const u16* a, const u16* b, float* c) {
    TILE(sb, 512);
    for (int i = threadIdx.x; i < 64; i += 128) ((uint4*)sb)[i ^ (i / 8 % 8)] = ((const uint4*)b)[i];
    FENCE_ASYNC();
    __syncthreads();
    float d[4] = {0, 0, 0, 0};
    int t = threadIdx.x, row = t / 32 * 16 + t % 32 / 4, column = t % 4 * 2;
    u32 r[4][4];
    for (int k = 0; k < 4; ++k)
        for (int i = 0; i < 4; ++i) r[k][i] = *(const u32*)(a + (row + i % 2 * 8) * 64 + k * 16 + column + i / 2 * 8);
    WG_FENCE();
    for (int k = 0; k < 4; ++k) MMA_RS(d, r[k], descriptor(sb + 16 * k, 16, 1024, 1));
    WG_COMMIT();
    WG_WAIT(0);
    store8(c, d, 8);
}
