// A warp copies tiles, one thread multiplies them, and four warps store the result.
//@ arch sm_100a
//@ launch kernel grid 1 block 192
//@ arg a f16[8192] input mod 7
//@ arg b f16[1024] input mod 5
//@ arg c f32[2048] output
//@ expect c = gemm_nt(a, b, 128, 16, 64)
#include "../bulk.cuh"
#include "../warpgroup.cuh"
#include "../tensor_core.cuh"
extern "C" __global__ void kernel(const u16* a, const u16* b, float* c) {
    __shared__ u32 slot;
    TILE(sa, 16384);
    TILE(sb, 2048);
    __shared__ __align__(8) u64 full[2], empty[2], done;
    if (threadIdx.x == 0) {
        for (int i = 0; i < 2; ++i) {
            asm volatile("mbarrier.init.shared::cta.b64 [%0], 32;" ::"r"(ADDRESS(&full[i])) : "memory");
            asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(ADDRESS(&empty[i])) : "memory");
        }
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(ADDRESS(&done)) : "memory");
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    T_ALLOC(slot, 32);
    T_SYNC();
    u32 d = slot;
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    if (warp == 4) {
        for (int n = 0; n < 4; ++n) {
            int stage = n % 2, parity = n / 2 % 2 ^ 1;
            if (parity) { WAIT(empty[stage], 1); } else { WAIT(empty[stage], 0); }
            for (int i = lane; i < 1024; i += 32) {
                ((uint4*)(sa + stage * 8192))[i ^ (i / 8 % 8)] = ((const uint4*)a)[i];
                if (i < 128) ((uint4*)(sb + stage * 1024))[i ^ (i / 8 % 8)] = ((const uint4*)b)[i];
            }
            FENCE_ASYNC();
            asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(ADDRESS(&full[stage])) : "memory");
        }
    } else if (warp == 5 && lane == 0) {
        for (int n = 0; n < 4; ++n) {
            int stage = n % 2;
            if (n / 2 % 2) { WAIT(full[stage], 1); } else { WAIT(full[stage], 0); }
            T_AFTER();
            T_PRODUCT(d, sa + stage * 8192, sb + stage * 1024, n != 0);
            T_COMMIT(empty[stage]);
        }
        T_COMMIT(done);
    } else if (warp < 4) {
        WAIT(done, 0);
        T_AFTER();
        for (int half = 0; half < 2; ++half) {
            u32 r[8];
            T_LOAD(r, d + 8 * half);
            T_WAIT_LD();
            for (int i = 0; i < 8; ++i) c[threadIdx.x * 16 + 8 * half + i] = __uint_as_float(r[i]) / 4;
        }
    }
    T_SYNC();
    T_FREE(d, 32);
}
