// A product of singles with 19 bits.
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
    __shared__ __align__(1024) float sa[8192], sb[1024];
    auto value = [](u16 half) { return __uint_as_float(half ? (((u32)half & 0x7fff) << 13) + (112u << 23) : 0u); };
    // Rows of 32 singles in two halves along K, each with a swizzle of 128 bytes.
    for (int i = threadIdx.x; i < 8192; i += 128) {
        int row = i / 64, k = i % 64;
        int at = row * 32 + ((k % 32 / 4 ^ row % 8) * 4 + k % 4);
        sa[k / 32 * 4096 + at] = value(a[i]);
        if (i < 1024) sb[k / 32 * 512 + at] = value(b[i]);
    }
    __shared__ u32 slot;
    T_ALLOC(slot, 32);
    FENCE_ASYNC();
    BARRIER(bar);
    T_AFTER();
    u32 d = slot;
    if (threadIdx.x == 0) {
        u32 form = T_FORM(128, 16) | 2u << 7 | 2u << 10;
        for (int k = 0; k < 8; ++k)
            T_MMA("tf32", d, t_descriptor(sa + k / 4 * 4096 + k % 4 * 8), t_descriptor(sb + k / 4 * 512 + k % 4 * 8), form, k);
        T_COMMIT(bar);
    }
    WAIT(bar, 0);
    T_AFTER();
    T_RESULT(c, d);
    T_SYNC();
    T_FREE(d, 32);
}
