// Instructions of clusters, for kernels that do something else wrong. These are macros so that a
// hazard is found on the kernel's own line.
typedef unsigned long long u64;
typedef unsigned short u16;

#define SHARED(place) ((unsigned)__cvta_generic_to_shared(place))

static __device__ __forceinline__ unsigned cluster_rank() {
    unsigned rank;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}

// The address of a shared variable in the block with a rank.
static __device__ __forceinline__ unsigned peer(unsigned at, unsigned rank) {
    unsigned there;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(at), "r"(rank));
    return there;
}

#define CLUSTER_ARRIVE() asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory")
#define CLUSTER_ARRIVE_RELAXED() asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory")
#define CLUSTER_WAIT() asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory")
#define CLUSTER_SYNC() asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory")

#define LOAD_PEER(value, at, rank) \
    asm volatile("ld.shared::cluster.s32 %0, [%1];" : "=r"(value) : "r"(peer(SHARED(at), rank)) : "memory")
#define STORE_PEER(at, rank, value) \
    asm volatile("st.shared::cluster.s32 [%0], %1;" ::"r"(peer(SHARED(at), rank)), "r"(value) : "memory")

#define INIT(bar, count) asm volatile("mbarrier.init.shared::cta.b64 [%0], " #count ";" ::"r"(SHARED(bar)) : "memory")
#define FENCE_INIT() asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory")
#define ARRIVE_PEER(bar, rank) \
    asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(peer(SHARED(bar), rank)) : "memory")
#define EXPECT(bar, bytes) \
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], " #bytes ";" ::"r"(SHARED(bar)) : "memory")
#define WAIT(bar, parity) \
    asm volatile("{\n .reg .pred p;\nL: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%0], " #parity \
                 ";\n @!p bra L;\n}" ::"r"(SHARED(bar)) : "memory")
#define WAIT_BLOCK(bar, parity) \
    asm volatile("{\n .reg .pred p;\nL: mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 p, [%0], " #parity \
                 ";\n @!p bra L;\n}" ::"r"(SHARED(bar)) : "memory")
#define FENCE_PROXY() asm volatile("fence.proxy.async.shared::cta;" ::: "memory")

// Copies from the own shared memory to that of a block, which its barrier counts.
#define COPY_PEER(to, from, bytes, bar, rank)                                                                     \
    asm volatile("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%0], [%1], " #bytes ", [%2];" \
                 ::"r"(peer(SHARED(to), rank)), "r"(SHARED(from)), "r"(peer(SHARED(bar), rank)) : "memory")
#define COPY_ALL(to, from, bytes, bar, mask)                                                                      \
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1], " \
                 #bytes ", [%2], %3;" ::"r"(SHARED(to)), "l"(from), "r"(SHARED(bar)), "h"((u16)(mask)) : "memory")
#define STORE_ASYNC(at, bar, rank, value)                                                                         \
    asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b32 [%0], %1, [%2];"                 \
                 ::"r"(peer(SHARED(at), rank)), "r"(value), "r"(peer(SHARED(bar), rank)) : "memory")
#define ADD_ASYNC(at, bar, rank, value)                                                                           \
    asm volatile("red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%0], %1, [%2];" \
                 ::"r"(peer(SHARED(at), rank)), "r"(value), "r"(peer(SHARED(bar), rank)) : "memory")

struct alignas(64) MAP {
    u64 opaque[16];
};
#define BOX_ALL(to, map, x, y, bar, mask)                                                                         \
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster " \
                 "[%0], [%1, {%2, %3}], [%4], %5;" ::"r"(SHARED(to)), "l"(&map), "r"(x), "r"(y), "r"(SHARED(bar)), "h"((u16)(mask)) : "memory")
