// A product of e4m3.
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
    // Small integers as e4m3: their exponent has a bias of 7.
    auto code = [](u16 half) -> unsigned char {
        float value = __uint_as_float(half ? (((u32)half & 0x7fff) << 13) + (112u << 23) : 0u);
        u16 pair;
        asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %1;" : "=h"(pair) : "f"(value));
        return (unsigned char)pair;
    };
    __shared__ __align__(1024) unsigned char sa[8192], sb[1024];
    for (int i = threadIdx.x; i < 8192; i += 128) {
        int row = i / 64, k = i % 64;
        int at = row * 64 + ((k / 16 ^ row / 2 % 4) * 16 + k % 16);
        sa[at] = code(a[i]);
        if (i < 1024) sb[at] = code(b[i]);
    }
    __shared__ u32 slot;
    T_ALLOC(slot, 32);
    FENCE_ASYNC();
    BARRIER(bar);
    T_AFTER();
    u32 d = slot;
    if (threadIdx.x == 0) {
        for (int k = 0; k < 2; ++k)
            T_MMA("f8f6f4", d, t_descriptor(sa + 32 * k, 16, 512, 4), t_descriptor(sb + 32 * k, 16, 512, 4), T_FORM(128, 16), k);
        T_COMMIT(bar);
    }
    WAIT(bar, 0);
    T_AFTER();
    T_RESULT(c, d);
    T_SYNC();
    T_FREE(d, 32);
}
