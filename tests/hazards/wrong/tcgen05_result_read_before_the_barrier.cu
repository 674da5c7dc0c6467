// The result is loaded without a wait for the barrier of the commit.
//@ verdict race
//@ arch sm_100a
//@ launch kernel grid 1 block 128
//@ arg a f16[8192] input mod 7
//@ arg b f16[1024] input mod 5
//@ arg c f32[2048] output
#include "../bulk.cuh"
#include "../warpgroup.cuh"
#include "../tensor_core.cuh"
extern "C" __global__ void kernel(const u16* a, const u16* b, float* c) {
    T_TILES(a, b);
    __shared__ u32 slot;
    T_ALLOC(slot, 32);
    FENCE_ASYNC();
    BARRIER(bar);
    T_AFTER();
    u32 d = slot;
    if (threadIdx.x == 0) {
        T_PRODUCT(d, sa, sb, 0); // CONFLICT
        T_COMMIT(bar);
    }
    T_AFTER();
    T_RESULT(c, d); // HAZARD
    T_SYNC();
    T_FREE(d, 32);
}
