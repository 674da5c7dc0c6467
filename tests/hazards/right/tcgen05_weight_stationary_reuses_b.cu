// Two products take B from the buffer that a first one filled.
//@ arch sm_100a
//@ launch kernel grid 1 block 128
//@ arg a f16[8192] input mod 7
//@ arg b f16[4096] input mod 5
//@ arg c f32[8192] output
//@ expect c = gemm_nt_scaled(a, b, 128, 64, 64)
#include "../bulk.cuh"
#include "../warpgroup.cuh"
#include "../tensor_core.cuh"
extern "C" __global__ void kernel(const u16* a, const u16* b, float* c) {
    T_TILE_OF(sa, a, 128);
    T_TILE_OF(sb, b, 64);
    __shared__ u32 slot;
    T_ALLOC(slot, 64);
    FENCE_ASYNC();
    BARRIER(bar);
    T_AFTER();
    const u32 d = slot;
    if (threadIdx.x == 0) {
        for (int k = 0; k < 4; ++k) {
            u64 left = t_descriptor(sa + 16 * k), right = t_descriptor(sb + 16 * k);
            T_MMA_WS(".collector::b1::fill", d, left, right, T_FORM(128, 64), k, 0ull);
            T_MMA_WS(".collector::b1::use", d, left, right, T_FORM(128, 64), 1, 0ull);
            T_MMA_WS(".collector::b1::lastuse", d, left, right, T_FORM(128, 64), 1, 0ull);
        }
        T_COMMIT(bar);
    }
    WAIT(bar, 0);
    T_AFTER();
    for (int n = 0; n < 64; n += 8) {
        u32 r[8];
        T_LOAD(r, d + n);
        T_WAIT_LD();
        for (int i = 0; i < 8; ++i) c[threadIdx.x * 64 + n + i] = __uint_as_float(r[i]);
    }
    T_SYNC();
    T_FREE(d, 64);
}
