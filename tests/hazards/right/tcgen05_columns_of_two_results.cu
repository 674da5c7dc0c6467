// Two results take turns while the one before is stored.
//@ arch sm_100a
//@ launch kernel grid 1 block 160
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
    __shared__ __align__(8) u64 full[2], empty[2];
    if (threadIdx.x == 0) {
        for (int i = 0; i < 2; ++i) {
            asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(ADDRESS(&full[i])) : "memory");
            asm volatile("mbarrier.init.shared::cta.b64 [%0], 128;" ::"r"(ADDRESS(&empty[i])) : "memory");
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    T_ALLOC(slot, 32);
    FENCE_ASYNC();
    T_SYNC();
    u32 d = slot;
    if (threadIdx.x == 128) {
        for (int n = 0; n < 4; ++n) {
            int at = n % 2;
            if (n / 2 % 2) { WAIT(empty[at], 0); } else { WAIT(empty[at], 1); }
            T_AFTER();
            T_PRODUCT(d + 16 * at, sa, sb, 0);
            T_COMMIT(full[at]);
        }
    } else if (threadIdx.x < 128) {
        for (int n = 0; n < 4; ++n) {
            int at = n % 2;
            if (n / 2 % 2) { WAIT(full[at], 1); } else { WAIT(full[at], 0); }
            T_AFTER();
            T_RESULT(c, d + 16 * at);
            T_BEFORE();
            asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(ADDRESS(&empty[at])) : "memory");
        }
    }
    T_SYNC();
    T_FREE(d, 32);
}
