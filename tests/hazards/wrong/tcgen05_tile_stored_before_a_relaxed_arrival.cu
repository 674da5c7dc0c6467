// A relaxed arrival orders accesses to tensor memory, and not stores to the tiles that the product reads.
//@ verdict race
//@ arch sm_100a
//@ launch kernel grid 1 block 128
//@ arg a f16[8192] input mod 7
//@ arg b f16[1024] input mod 5
//@ arg c f32[2048] output
#include "../bulk.cuh"
#include "../warpgroup.cuh"
#include "../tensor_core.cuh"
#define WAIT_RELAXED(bar, parity)                                                                                 \
    asm volatile("{\n .reg .pred p;\nL: mbarrier.try_wait.parity.relaxed.cluster.shared::cta.b64 p, [%0], %1;\n " \
                 "@!p bra L;\n}" ::"r"(ADDRESS(&bar)), "r"(parity) : "memory")
extern "C" __global__ void kernel(const u16* a, const u16* b, float* c) {
    __shared__ u32 slot;
    __shared__ __align__(8) u64 full;
    T_ALLOC(slot, 32);
    if (threadIdx.x == 0) asm volatile("mbarrier.init.shared::cta.b64 [%0], 128;" ::"r"(ADDRESS(&full)) : "memory");
    BARRIER(bar);
    T_AFTER();
    T_TILES(a, b); // CONFLICT
    FENCE_ASYNC();
    asm volatile("mbarrier.arrive.relaxed.cluster.shared::cta.b64 _, [%0];" ::"r"(ADDRESS(&full)) : "memory");
    u32 d = slot;
    if (threadIdx.x == 0) {
        WAIT_RELAXED(full, 0);
        T_PRODUCT(d, sa, sb, 0); // HAZARD
        T_COMMIT(bar);
    }
    __syncwarp();
    WAIT(bar, 0);
    T_AFTER();
    T_RESULT(c, d);
    T_SYNC();
    T_FREE(d, 32);
}
