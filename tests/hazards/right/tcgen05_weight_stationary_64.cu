// A weight-stationary product of 64 rows: its columns are in parts, one beside each copy of the rows.
//@ arch sm_100a
//@ launch kernel grid 1 block 128
//@ arg a f16[4096] input mod 7
//@ arg b f16[4096] input mod 5
//@ arg c f32[4096] output
//@ expect c = gemm_nt(a, b, 64, 64, 64)
#include "../bulk.cuh"
#include "../warpgroup.cuh"
#include "../tensor_core.cuh"
extern "C" __global__ void kernel(const u16* a, const u16* b, float* c) {
    T_TILE_OF(sa, a, 64);
    T_TILE_OF(sb, b, 64);
    __shared__ u32 slot;
    T_ALLOC(slot, 64);
    FENCE_ASYNC();
    BARRIER(bar);
    T_AFTER();
    const u32 d = slot, part = 64 * 64 / 128;
    if (threadIdx.x == 0) {
        T_PRODUCT_WS(d, sa, sb, T_FORM(64, 64), 0);
        T_COMMIT(bar);
    }
    WAIT(bar, 0);
    T_AFTER();
    for (int n = 0; n < part; n += 8) {
        u32 r[8];
        T_LOAD(r, d + n);
        T_WAIT_LD();
        for (int i = 0; i < 8; ++i) c[threadIdx.x % 64 * 64 + threadIdx.x / 64 * part + n + i] = __uint_as_float(r[i]);
    }
    T_SYNC();
    T_FREE(d, 64);
}
