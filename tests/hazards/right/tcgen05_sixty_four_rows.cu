// A product of 64 rows, whose lanes are in groups of 16.
//@ arch sm_100a
//@ launch kernel grid 1 block 128
//@ arg a f16[8192] input mod 7
//@ arg b f16[1024] input mod 5
//@ arg c f32[1024] output
//@ expect c = gemm_nt(a, b, 64, 16, 64)
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
            T_MMA("f16", d, t_descriptor(sa + 16 * k), t_descriptor(sb + 16 * k), T_FORM(64, 16), k);
        T_COMMIT(bar);
    }
    WAIT(bar, 0);
    T_AFTER();
    for (int half = 0; half < 2; ++half) {
        u32 r[4];
        asm volatile("tcgen05.ld.sync.aligned.16x256b.x1.b32 {%0, %1, %2, %3}, [%4];"
                     : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                     : "r"(d + 8 * half + (threadIdx.x / 32 * 32 << 16)));
        T_WAIT_LD();
        int row = threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4, column = 8 * half + threadIdx.x % 4 * 2;
        for (int i = 0; i < 4; ++i) c[(row + i / 2 * 8) * 16 + column + i % 2] = __uint_as_float(r[i]);
    }
    T_SYNC();
    T_FREE(d, 32);
}
