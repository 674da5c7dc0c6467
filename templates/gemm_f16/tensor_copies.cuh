// Tiles by the copy engine, for kernel.cu with CORE 2 and 3: cp.async.bulk.tensor, sm_90 or later.
//
// One warp of a block copies, others multiply. Tiles come by tensor maps in the layout of core 1; stage i has two
// mbarriers:
//
//     full[i]     the arrivals of those that copy, and the bytes of A and B
//     empty[i]    the arrivals of those that multiply
//
// With CORE 2 CLUSTER neighbours share a tile of A (MULTICAST 0: they lie along N) or of B (1: along M). Each copies its
// part of the shared tile to all. A stage of a block is therefore free once the warps of all blocks are done
// with theirs, and full when the copies of all blocks have landed. With CORE 3 a pair of blocks shares the columns
// of B: each copies its half for itself, and reports to full[i] of the first block, which multiplies for both.

#include <cuda.h>

#include "../mbarrier.cuh"
#include "../wgmma.cuh"

#define FULL_AT (STAGES * STAGE_BYTES)              // mbarriers of full, then of empty stages
#define SUMS_AT (FULL_AT + 16 * STAGES)             // CORE 3: mbarriers of two sets of sums, and their address
#define STAGING_AT ((SUMS_AT + (CORE == 3 ? 48 : 0) + 1023) / 1024 * 1024)
#define PANELS_IN_FLIGHT 2                          // Panels of C that a warp stores at once
#define PANEL_BYTES (32 * B_LD)                     // 16 rows of a panel of C
#define SHARED_ROWS_A (BM / (MULTICAST == 0 ? CLUSTER : 1))   // Rows of a tile of A that a block copies
#define SHARED_ROWS_B (BK / (MULTICAST == 1 && CORE == 2 ? CLUSTER : 1))

static_assert(ALIGNED, "rows of a tensor map are multiples of 16 bytes");
static_assert(SHARED_ROWS_A % 8 == 0 && SHARED_ROWS_B % 8 == 0, "a swizzle repeats after 8 rows");

// ---- Clusters ----

__device__ __forceinline__ u32 rank_in_cluster() {
    if (CLUSTER == 1) return 0;
    u32 rank;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}

// One thread of a warp whose threads are all here. The compiler knows that it is one.
__device__ __forceinline__ bool elected() {
    u32 own;
    asm volatile("{ .reg .pred p; elect.sync _|p, 0xffffffff; selp.u32 %0, 1, 0, p; }" : "=r"(own));
    return own;
}

// All threads of all blocks of the cluster.
__device__ __forceinline__ void cluster_barrier() {
    if (CLUSTER == 1) {
        __syncthreads();
        return;
    }
    asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

// Arrives at the mbarrier that a block of the cluster has at the same place. The scope is that of a block: with that of
// a cluster each arrival waits for a fence of the whole GPU.
__device__ __forceinline__ void arrive_at(u32 barrier, u32 rank) {
    if (CLUSTER == 1)
        mbarrier_arrive(barrier);
    else
        asm volatile("{ .reg .b32 peer;\n"
                     "mapa.shared::cluster.u32 peer, %0, %1;\n"
                     "mbarrier.arrive.shared::cluster.b64 _, [peer]; }" ::"r"(barrier), "r"(rank) : "memory");
}

// ---- Rings of buffers ----

// A place in a ring of SLOTS buffers whose mbarriers, of full and then of empty ones, lie at AT. `parity`: of the phase
// of full() that the use of this place waits for.
template <int SLOTS, int AT>
struct Ring {
    u32 base;
    u32 slot, parity;

    __device__ __forceinline__ u32 full() const { return base + AT + 8 * slot; }
    __device__ __forceinline__ u32 empty() const { return base + AT + 8 * (SLOTS + slot); }
    __device__ __forceinline__ void advance() {
        if (++slot < SLOTS) return;
        slot = 0;
        parity ^= 1;
    }
    // Before any use; a fence and a barrier of the cluster must follow.
    __device__ __forceinline__ static void init(u32 base, u32 arrivals_full, u32 arrivals_empty) {
        for (int i = 0; i < SLOTS; ++i) {
            mbarrier_init(base + AT + 8 * i, arrivals_full);
            mbarrier_init(base + AT + 8 * (SLOTS + i), arrivals_empty);
        }
    }
};

typedef Ring<STAGES, FULL_AT> Place;    // Stages of A and B

__device__ __forceinline__ u32 stage_of(const Place& place) { return place.base + place.slot * STAGE_BYTES; }

// ---- The copying warp ----

#if PAIR == 2
#define COPY_GROUP ".cta_group::2"    // The mbarrier may be that of the other block
#else
#define COPY_GROUP ""
#endif

// Copies the box at (row, column) of a map to `to`; `SHARED`: in all blocks of the cluster.
template <bool SHARED>
__device__ __forceinline__ void copy_box(u32 to, const CUtensorMap& map, int row, int column, u32 barrier) {
    if constexpr (SHARED)
        asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster"
                     " [%0], [%1, {%2, %3}], [%4], %5;"
                     ::"r"(to), "l"(&map), "r"(column), "r"(row), "r"(barrier), "h"((u16)((1 << CLUSTER) - 1)) : "memory");
    else
        asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes" COPY_GROUP
                     " [%0], [%1, {%2, %3}], [%4];"
                     ::"r"(to), "l"(&map), "r"(column), "r"(row), "r"(barrier) : "memory");
}

// Arrives, and adds the bytes of a stage that this block copies.
__device__ __forceinline__ void expect_stage(u32 barrier) {
    if (PAIR == 1)
        mbarrier_expect(barrier, STAGE_BYTES);
    else
        asm volatile("mbarrier.arrive.expect_tx.release.cluster.shared::cluster.b64 _, [%0], %1;" ::"r"(barrier), "r"(STAGE_BYTES) : "memory");
}

// Copies all steps of a unit, each once its stage is empty. One thread.
__device__ __forceinline__ void copy_steps(Place& place, const Work& work, const CUtensorMap& a_map, const CUtensorMap& b_map, u32 rank) {
    const u32 part_a = MULTICAST == 0 ? rank * SHARED_ROWS_A : 0, part_b = MULTICAST == 1 && CORE == 2 ? rank * SHARED_ROWS_B : 0;
    const int column0 = work.column0 + (PAIR == 2 ? rank * (BN / PAIR) : 0);
    for (int i = 0; i < work.count; ++i, place.advance()) {
        const int k = (work.first + i) * BK;
        // The same mbarrier of the first block of a pair: bit 24 is the lowest of the rank.
        const u32 full = PAIR == 2 ? place.full() & ~(1u << 24) : place.full();
        // The phase before the first one counts as completed.
        mbarrier_wait(place.empty(), place.parity ^ 1);
        expect_stage(full);
        copy_box<(CLUSTER > 1 && MULTICAST == 0)>(stage_of(place) + part_a * (2 * BK), a_map, work.row0 + part_a, k, full);
#pragma unroll
        for (int n = 0; n < BN / PAIR; n += B_LD)
            copy_box<(CLUSTER > 1 && MULTICAST == 1 && CORE == 2)>(stage_of(place) + A_BYTES + n * (2 * BK) + part_b * (2 * B_LD), b_map,
                                                                 k + part_b, column0 + n, full);
    }
}

// ---- Stores ----

// Stores the warp's part of C, whose first element is (row, column), by tensor copies: 16 rows of a panel at
// once, from shared memory of this warp in the swizzle of the map.
__device__ __forceinline__ void store_panels(const float (&c)[MT][NT][4], const CUtensorMap& c_map, u32 staging, int row, int column, int lane) {
    constexpr int TILES = B_LD / 8, PANELS = NT / TILES;
#pragma unroll
    for (int p = 0; p < MT * PANELS; ++p) {
        const int i = p / PANELS, j = p % PANELS * TILES;
        const u32 panel = staging + p % PANELS_IN_FLIGHT * PANEL_BYTES;
        // The last panel of the part before may be the same one.
        if (lane == 0 && p == 0 && MT * PANELS % PANELS_IN_FLIGHT) asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
        else if (lane == 0) asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(PANELS_IN_FLIGHT - 1) : "memory");
        __syncwarp();
#pragma unroll
        for (int t = 0; t < TILES; ++t)
#pragma unroll
            for (int h = 0; h < 2; ++h)
                asm volatile("st.shared.u32 [%0], %1;"
                             ::"r"(panel + chunk_at<B_LD>(lane / 4 + 8 * h, t) + 4 * (lane % 4)),
                             "r"(pack(c[i][j + t][2 * h], c[i][j + t][2 * h + 1])) : "memory");
        publish();
        __syncwarp();
        if (lane == 0) {
            asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%1, %2}], [%3];"
                         ::"l"(&c_map), "r"(column + 8 * j), "r"(row + MT_ROWS * i), "r"(panel) : "memory");
            asm volatile("cp.async.bulk.commit_group;" ::: "memory");
        }
    }
}
