// Relaxed arrivals and waits order accesses to tensor memory (PTX ISA, 9.7.16.6.4): of a product before loads, and
// of loads before the next product.
//@ arch sm_100a
//@ launch kernel grid 1 block 128
//@ arg a f16[8192] input mod 7
//@ arg b f16[1024] input mod 5
//@ arg c f32[2048] output
//@ expect c = gemm_nt(a, b, 128, 16, 64)
#include "../bulk.cuh"
#include "../warpgroup.cuh"
#include "../tensor_core.cuh"
#define WAIT_RELAXED(bar, parity)                                                                                 \
    asm volatile("{\n .reg .pred p;\nL: mbarrier.try_wait.parity.relaxed.cluster.shared::cta.b64 p, [%0], %1;\n " \
                 "@!p bra L;\n}" ::"r"(ADDRESS(&bar)), "r"(parity) : "memory")
extern "C" __global__ void kernel(const u16* a, const u16* b, float* c) {
    T_TILES(a, b);
    __shared__ u32 slot;
    __shared__ __align__(8) u64 empty;
    T_ALLOC(slot, 32);
    FENCE_ASYNC();
    if (threadIdx.x == 0) asm volatile("mbarrier.init.shared::cta.b64 [%0], 128;" ::"r"(ADDRESS(&empty)) : "memory");
    BARRIER(bar);
    T_AFTER();
    u32 d = slot;
    for (int i = 0; i < 2; ++i) {
        if (threadIdx.x == 0) {
            WAIT_RELAXED(empty, i ^ 1);
            T_AFTER();
            T_PRODUCT(d, sa, sb, 0);
            T_COMMIT(bar);
        }
        __syncwarp();
        WAIT_RELAXED(bar, i);
        T_AFTER();
        T_RESULT(c, d);
        T_BEFORE();
        asm volatile("mbarrier.arrive.relaxed.cluster.shared::cta.b64 _, [%0];" ::"r"(ADDRESS(&empty)) : "memory");
    }
    T_SYNC();
    T_FREE(d, 32);
}
