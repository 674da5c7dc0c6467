// A product of e4m3 whose blocks of 32 have scales in tensor memory.
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
    // Row m of A has the scale 2^(m % 3), column n of B 2^(n % 2), the same for both steps along K.
    __shared__ __align__(128) unsigned char fa[512], fb[512];
    for (int i = threadIdx.x; i < 512; i += 128) {
        int row = i % 16 / 4 * 32 + i / 16;
        fa[i] = 127 + row % 3;
        fb[i] = 127 + row % 2;
    }
    __shared__ u32 slot;
    T_ALLOC(slot, 32);
    FENCE_ASYNC();
    BARRIER(bar);
    T_AFTER();
    u32 d = slot;
    if (threadIdx.x == 0) {
        asm volatile("tcgen05.cp.cta_group::1.32x128b.warpx4 [%0], %1;" ::"r"(d + 16), "l"(t_descriptor(fa, 16, 128, 0)) : "memory");
        asm volatile("tcgen05.cp.cta_group::1.32x128b.warpx4 [%0], %1;" ::"r"(d + 20), "l"(t_descriptor(fb, 16, 128, 0)) : "memory");
        for (int k = 0; k < 2; ++k) {
            u32 form = k << 4 | 16 / 8 << 17 | 1u << 23 | 128 / 16 << 24 | k << 29;
            asm volatile("{\n .reg .pred p;\n setp.ne.b32 p, %6, 0;\n"
                         " tcgen05.mma.cta_group::1.kind::mxf8f6f4.block_scale.scale_vec::1X [%0], %1, %2, %3, [%4], [%5], p;\n}"
                         ::"r"(d), "l"(t_descriptor(sa + 32 * k, 16, 512, 4)), "l"(t_descriptor(sb + 32 * k, 16, 512, 4)), "r"(form), "r"(d + 16), "r"(d + 20), "r"(k) : "memory");
        }
        T_COMMIT(bar);
    }
    WAIT(bar, 0);
    T_AFTER();
    for (int half = 0; half < 2; ++half) {
        u32 r[8];
        T_LOAD(r, d + 8 * half);
        T_WAIT_LD();
        for (int i = 0; i < 8; ++i)
            c[threadIdx.x * 16 + 8 * half + i] = __uint_as_float(r[i]) / ((1 << threadIdx.x % 3) * (1 << i % 2));
    }
    T_SYNC();
    T_FREE(d, 32);
}
