// Each warp loads the lanes of the first.
//@ verdict crashed
//@ arch sm_100a
//@ launch kernel grid 1 block 128
//@ arg a f16[8192] input mod 7
//@ arg b f16[1024] input mod 5
//@ arg c f32[2048] output
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
        T_PRODUCT(d, sa, sb, 0);
        T_COMMIT(bar);
    }
    WAIT(bar, 0);
    T_AFTER();
    u32 r[8];
    asm volatile("tcgen05.ld.sync.aligned.32x32b.x8.b32 {%0, %1, %2, %3, %4, %5, %6, %7}, [%8];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]), "=r"(r[4]), "=r"(r[5]), "=r"(r[6]), "=r"(r[7])
                 : "r"(d)); // HAZARD
    T_WAIT_LD();
    for (int i = 0; i < 16; ++i) c[threadIdx.x * 16 + i] = __uint_as_float(r[i % 8]);
    T_SYNC();
    T_FREE(d, 32);
}
