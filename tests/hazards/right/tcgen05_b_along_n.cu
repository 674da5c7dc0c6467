// B is stored along N.
//@ arch sm_100a
//@ launch kernel grid 1 block 128
//@ arg a f16[8192] input mod 7
//@ arg b f16[4096] input mod 5
//@ arg c f32[8192] output
//@ expect c = gemm_nt(a, b, 128, 64, 64)
#include "../bulk.cuh"
#include "../warpgroup.cuh"
#include "../tensor_core.cuh"
extern "C" __global__ void kernel(const u16* a, const u16* b, float* c) {
    TILE(sa, 8192);
    TILE(sb, 4096);
    for (int i = threadIdx.x; i < 1024; i += 128) ((uint4*)sa)[i ^ (i / 8 % 8)] = ((const uint4*)a)[i];
    for (int i = threadIdx.x; i < 4096; i += 128) {
        int n = i / 64, k = i % 64;
        sb[k * 64 + ((n / 8 ^ k % 8) * 8 + n % 8)] = b[i];
    }
    __shared__ u32 slot;
    T_ALLOC(slot, 64);
    FENCE_ASYNC();
    BARRIER(bar);
    T_AFTER();
    u32 d = slot;
    if (threadIdx.x == 0) {
        for (int k = 0; k < 4; ++k)
            T_MMA("f16", d, t_descriptor(sa + 16 * k), t_descriptor(sb + 1024 * k, 8192, 1024), T_FORM(128, 64) | 1u << 16, k);
        T_COMMIT(bar);
    }
    WAIT(bar, 0);
    T_AFTER();
    for (int part = 0; part < 8; ++part) {
        u32 r[8];
        T_LOAD(r, d + 8 * part);
        T_WAIT_LD();
        for (int i = 0; i < 8; ++i) c[threadIdx.x * 64 + 8 * part + i] = __uint_as_float(r[i]);
    }
    T_SYNC();
    T_FREE(d, 64);
}
