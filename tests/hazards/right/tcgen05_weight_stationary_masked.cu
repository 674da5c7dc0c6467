// Columns that the mask zeroes are missing in a second product, and those of a shifted B are found two further.
//@ arch sm_100a
//@ launch kernel grid 1 block 128
//@ arg a f16[8192] input mod 7
//@ arg b f16[4608] input mod 5
//@ arg c f32[8192] output
//@ expect c = gemm_nt(a, b, 128, 64, 64)
#include "../bulk.cuh"
#include "../warpgroup.cuh"
#include "../tensor_core.cuh"
extern "C" __global__ void kernel(const u16* a, const u16* b, float* c) {
    T_TILE_OF(sa, a, 128);
    T_TILE_OF(sb, b, 72);
    __shared__ u32 slot;
    T_ALLOC(slot, 256);
    FENCE_ASYNC();
    BARRIER(bar);
    T_AFTER();
    const u32 d = slot;
    if (threadIdx.x == 0) {
        T_PRODUCT_WS(d, sa, sb, T_FORM(128, 64), 0);
        // Four columns are used and three are zeroed, in turn.
        T_PRODUCT_WS(d + 64, sa, sb, T_FORM(128, 64), 1ull << 39 | 2ull << 40 | 3ull << 48);
        T_PRODUCT_WS(d + 128, sa, sb, T_FORM(128, 64), 2ull << 56);
        T_COMMIT(bar);
    }
    WAIT(bar, 0);
    T_AFTER();
    for (int n = 0; n < 64; n += 8) {
        u32 whole[8], masked[8], shifted[8];
        T_LOAD(whole, d + n);
        T_LOAD(masked, d + 64 + n);
        T_LOAD(shifted, d + 128 + n);
        T_WAIT_LD();
        for (int i = 0; i < 8; ++i) {
            float all = __uint_as_float(whole[i]), some = __uint_as_float(masked[i]);
            float* to = c + threadIdx.x * 64 + n + i;
            const bool zeroed = (n + i) % 7 >= 4, front = n + i < 2;
            if (front) *to = zeroed ? all - some : some;
            // The other columns are those of the shifted product, if they agree.
            if (n + i < 62) to[2] = __uint_as_float(shifted[i]);
            if (!front && *to != (zeroed ? all - some : some)) *to = -1;
        }
    }
    T_SYNC();
    T_FREE(d, 256);
}
