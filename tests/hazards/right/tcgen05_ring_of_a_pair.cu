// Two blocks multiply together from a ring of two stages that boxes of both fill. The second block waits for the
// last commit alone, after which the earlier ones have arrived at its stages.
//@ arch sm_100a
//@ launch kernel grid 2 block 128 cluster 2
//@ arg a f16[49152] input mod 7
//@ arg b f16[6144] input mod 5
//@ arg c f32[8192] output
//@ map ma a 192,256 box 64,128 swizzle 128
//@ map mb b 192,32 box 64,16 swizzle 128
//@ expect c = gemm_nt(a, b, 256, 32, 192)
#include "../bulk.cuh"
#include "../warpgroup.cuh"
#include "../tensor_core.cuh"
#define PARITY(bar, parity)                                                                                        \
    asm volatile("{\n .reg .pred p;\nL: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n @!p bra L;\n}" ::"r"( \
                     ADDRESS(&bar)), "r"(parity) : "memory")
#define BOX_OF_PAIR(to, map, x, y, bar)                                                                            \
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.cta_group::2 [%0], " \
                 "[%1, {%2, %3}], [%4];" ::"r"(ADDRESS(to)), "l"(&map), "r"(x), "r"(y), "r"(bar) : "memory")
#define COMMIT_PAIR(bar)                                                                                          \
    asm volatile("tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%0], %1;" \
                 ::"r"(ADDRESS(&bar)), "h"((u16)3) : "memory")
extern "C" __global__ void kernel(const u16* a, const u16* b, float* c, MAP ma, MAP mb) {
    u32 rank;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    TILE(sa, 2 * 8192);
    TILE(sb, 2 * 1024);
    __shared__ __align__(8) u64 full[2], empty[2];
    __shared__ u32 slot;
    for (int i = 0; threadIdx.x == 0 && i < 4; ++i)
        asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(ADDRESS((i < 2 ? full : empty) + i % 2)), "r"(i < 2 ? 2 : 1) : "memory");
    if (threadIdx.x < 32)
        asm volatile("tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [%0], 32;" ::"r"(ADDRESS(&slot)) : "memory");
    BARRIER(done);
    asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
    T_AFTER();
    u32 d = slot;
    if (threadIdx.x == 64) {
        for (int i = 0; i < 3; ++i) {
            int s = i % 2;
            PARITY(empty[s], (i / 2 & 1) ^ 1);
            // The barrier of the first block, which multiplies.
            u32 bar = ADDRESS(&full[s]) & 0xfeffffff;
            asm volatile("mbarrier.arrive.expect_tx.release.cluster.shared::cluster.b64 _, [%0], 18432;" ::"r"(bar) : "memory");
            BOX_OF_PAIR(sa + s * 8192, ma, i * 64, (int)rank * 128, bar);
            BOX_OF_PAIR(sb + s * 1024, mb, i * 64, (int)rank * 16, bar);
        }
    } else if (threadIdx.x == 0 && rank == 0) {
        for (int i = 0; i < 3; ++i) {
            int s = i % 2;
            PARITY(full[s], i / 2);
            T_AFTER();
            for (int k = 0; k < 4; ++k)
                asm volatile("{\n .reg .pred p;\n setp.ne.b32 p, %4, 0;\n tcgen05.mma.cta_group::2.kind::f16 [%0], %1, %2, %3, p;\n}"
                             ::"r"(d), "l"(t_descriptor(sa + s * 8192 + 16 * k)), "l"(t_descriptor(sb + s * 1024 + 16 * k)),
                             "r"(T_FORM(256, 32)), "r"(i + k) : "memory");
            COMMIT_PAIR(empty[s]);
        }
        COMMIT_PAIR(done);
    }
    __syncwarp();
    WAIT(done, 0);
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
