// Rows of A move by a lane within each quarter of tensor memory, between two products.
//@ arch sm_100a
//@ launch kernel grid 1 block 128
//@ arg a f16[8192] input mod 7
//@ arg b f16[1024] input mod 5
//@ arg c f32[2048] output
//@ expect c = gemm_nt(a, b, 128, 16, 64)
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
    const u32 d = slot, e = d + 32;
    T_STORE_A(e, a);
    T_WAIT_ST();
    T_SYNC();
    if (threadIdx.x == 0) {
        for (int k = 0; k < 4; ++k)
            T_MMA_TS("f16", d, e + 8 * k, t_descriptor(sb + 16 * k), T_FORM(128, 16), k);
        for (int k = 0; k < 4; ++k)
            for (u32 quarter = 0; quarter < 4; ++quarter) T_SHIFT(e + 8 * k + (quarter * 32 << 16));
        for (int k = 0; k < 4; ++k)
            T_MMA_TS("f16", d + 16, e + 8 * k, t_descriptor(sb + 16 * k), T_FORM(128, 16), k);
        T_COMMIT(bar);
    }
    WAIT(bar, 0);
    T_AFTER();
    bool kept = true;
    for (int half = 0; half < 2; ++half) {
        u32 r[8], next[8];
        T_LOAD(r, d + 8 * half);
        T_LOAD(next, d + 16 + 8 * half);
        T_WAIT_LD();
        for (int i = 0; i < 8; ++i) {
            float* to = c + threadIdx.x * 16 + 8 * half + i;
            // The rows of a quarter move by one, and its last one stays.
            if (threadIdx.x % 32 == 0) *to = __uint_as_float(r[i]);
            if (threadIdx.x % 32 != 31) to[16] = __uint_as_float(next[i]);
            else kept &= r[i] == next[i];
        }
    }
    T_SYNC();
    if (!kept) c[threadIdx.x] = -1;
    T_FREE(d, 64);
}
