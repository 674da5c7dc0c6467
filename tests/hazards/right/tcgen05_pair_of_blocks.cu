// Two blocks of a cluster multiply together: each has half of the rows and of the columns.
//@ arch sm_100a
//@ launch kernel grid 2 block 128 cluster 2
//@ arg a f16[16384] input mod 7
//@ arg b f16[2048] input mod 5
//@ arg c f32[8192] output
//@ expect c = gemm_nt(a, b, 256, 32, 64)
#include "../bulk.cuh"
#include "../warpgroup.cuh"
#include "../tensor_core.cuh"
extern "C" __global__ void kernel(const u16* a, const u16* b, float* c) {
    u32 rank;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    TILE(sa, 8192);
    TILE(sb, 1024);
    for (int i = threadIdx.x; i < 1024; i += 128) {
        ((uint4*)sa)[i ^ (i / 8 % 8)] = ((const uint4*)a)[rank * 1024 + i];
        if (i < 128) ((uint4*)sb)[i ^ (i / 8 % 8)] = ((const uint4*)b)[rank * 128 + i];
    }
    __shared__ u32 slot;
    if (threadIdx.x < 32)
        asm volatile("tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [%0], 32;" ::"r"(ADDRESS(&slot)) : "memory");
    FENCE_ASYNC();
    BARRIER(bar);
    asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
    u32 d = slot;
    if (rank == 0 && threadIdx.x == 0) {
        for (int k = 0; k < 4; ++k)
            asm volatile("{\n .reg .pred p;\n setp.ne.b32 p, %4, 0;\n tcgen05.mma.cta_group::2.kind::f16 [%0], %1, %2, %3, p;\n}"
                         ::"r"(d), "l"(t_descriptor(sa + 16 * k)), "l"(t_descriptor(sb + 16 * k)), "r"(T_FORM(256, 32)), "r"(k) : "memory");
        asm volatile("tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%0], %1;"
                     ::"r"(ADDRESS(&bar)), "h"((u16)3) : "memory");
    }
    WAIT(bar, 0);
    T_AFTER();
    for (int part = 0; part < 4; ++part) {
        u32 r[8];
        T_LOAD(r, d + 8 * part);
        T_WAIT_LD();
        for (int i = 0; i < 8; ++i) c[(rank * 128 + threadIdx.x) * 32 + 8 * part + i] = __uint_as_float(r[i]);
    }
    T_BEFORE();
    asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
    if (threadIdx.x < 32)
        asm volatile("tcgen05.dealloc.cta_group::2.sync.aligned.b32 %0, 32;" ::"r"(d) : "memory");
}
