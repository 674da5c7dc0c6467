// A product reads A from tensor memory before the stores were waited for.
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
    T_ALLOC(slot, 64);
    FENCE_ASYNC();
    BARRIER(bar);
    T_AFTER();
    u32 d = slot, e = d + 32;
    for (int k = 0; k < 4; ++k) {
        u32 r[8];
        for (int i = 0; i < 8; ++i) r[i] = ((const u32*)a)[threadIdx.x * 32 + 8 * k + i];
        T_STORE(r, e + 8 * k); // CONFLICT
    }
    T_SYNC();
    if (threadIdx.x == 0) {
        for (int k = 0; k < 4; ++k)
            T_MMA_TS("f16", d, e + 8 * k, t_descriptor(sb + 16 * k), T_FORM(128, 16), k); // HAZARD
        T_COMMIT(bar);
    }
    WAIT(bar, 0);
    T_AFTER();
    T_RESULT(c, d);
    T_SYNC();
    T_FREE(d, 64);
}
