// The product has more columns than were allocated.
//@ verdict out_of_bounds
//@ also uninitialized
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
        for (int k = 0; k < 4; ++k)
            T_MMA("f16", d, t_descriptor(sa + 16 * k), t_descriptor(sa + 16 * k), T_FORM(128, 64), k); // HAZARD
        T_COMMIT(bar);
    }
    WAIT(bar, 0);
    T_AFTER();
    T_RESULT(c, d);
    T_SYNC();
    T_FREE(d, 32);
}
