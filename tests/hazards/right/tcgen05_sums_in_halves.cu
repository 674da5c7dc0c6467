// Sums in halves, two columns in a register.
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
    T_ALLOC(slot, 32);
    FENCE_ASYNC();
    BARRIER(bar);
    T_AFTER();
    u32 d = slot;
    if (threadIdx.x == 0) {
        for (int k = 0; k < 4; ++k)
            T_MMA("f16", d, t_descriptor(sa + 16 * k), t_descriptor(sb + 16 * k), T_FORM(128, 16) & ~(1u << 4), k);
        T_COMMIT(bar);
    }
    WAIT(bar, 0);
    T_AFTER();
    u32 r[8];
    asm volatile("tcgen05.ld.sync.aligned.32x32b.x8.pack::16b.b32 {%0, %1, %2, %3, %4, %5, %6, %7}, [%8];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]), "=r"(r[4]), "=r"(r[5]), "=r"(r[6]), "=r"(r[7])
                 : "r"(d + (threadIdx.x / 32 * 32 << 16)));
    T_WAIT_LD();
    for (int i = 0; i < 16; ++i) {
        u16 half = (u16)(r[i / 2] >> i % 2 * 16);
        float value;
        asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(half));
        c[threadIdx.x * 16 + i] = value;
    }
    T_SYNC();
    T_FREE(d, 32);
}
