// Registers of A are overwritten before the wait.
//@ verdict race
//@ arch sm_90a
//@ launch kernel grid 1 block 128
//@ arg a f16[4096] input mod 7
//@ arg b f16[512] input mod 5
//@ arg c f32[512] output
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
    u32 q[4] = {r[0][0], r[0][1], r[0][2], r[0][3]};
    for (int k = 0; k < 2; ++k) {
        MMA_RS(d, q, descriptor(sb + 16 * k, 16, 1024, 1)); // HAZARD
        WG_COMMIT();
        asm volatile("add.u32 %0, %0, %1;" : "+r"(q[0]) : "r"(r[3][0])); // HAZARD
    }
    WG_WAIT(0);
    store8(c, d, 8);
}
