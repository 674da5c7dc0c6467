// A warp loads rows that a shift may still move.
//@ verdict race
//@ arch sm_100a
//@ launch kernel grid 1 block 128
//@ arg a f16[8192] input mod 7
//@ arg b f16[4096] input mod 5
//@ arg c f32[2048] output
#include "../bulk.cuh"
#include "../warpgroup.cuh"
#include "../tensor_core.cuh"
extern "C" __global__ void kernel(const u16* a, const u16* b, float* c) {
    T_TILE_OF(sa, a, 128);
    T_TILE_OF(sb, b, 64);
    __shared__ u32 slot;
    T_ALLOC(slot, 128);
    FENCE_ASYNC();
    BARRIER(bar);
    T_AFTER();
    const u32 d = slot, e = d + 64;
    T_STORE_A(e, a);
    T_WAIT_ST();
    T_SYNC();
    if (threadIdx.x == 0) {
        T_SHIFT(e); // CONFLICT
        T_PRODUCT(d, sa, sb, 0);
        T_COMMIT(bar);
    }
    u32 early[8];
    if (threadIdx.x < 32) {
        T_LOAD(early, e); // HAZARD
        T_WAIT_LD();
        c[threadIdx.x] = early[0];
    }
    WAIT(bar, 0);
    T_AFTER();
    T_RESULT(c, d);
    T_SYNC();
    T_FREE(d, 128);
}
