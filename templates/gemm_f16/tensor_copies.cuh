// Core 2 of kernel.cu: wgmma fed by the copy engine, sm_90a only.
//
// One warp of a block copies, the others multiply. Tiles come by tensor maps (cp.async.bulk.tensor) in the
// layout of core 1; stage i has two mbarriers:
//
//     full[i]     one arrival of the copying warp, and the bytes of A and B
//     empty[i]    one arrival of each multiplying warp of the cluster
//
// CLUSTER neighbours share a tile of A (MULTICAST 0: they lie along N) or of B (1: along M). Each copies its
// part of the shared tile to all. A stage of a block is therefore free once the warps of all blocks are done
// with theirs, and full when the copies of all blocks have landed.

#include <cuda.h>

#include "../mbarrier.cuh"

#define FULL_AT (STAGES * STAGE_BYTES)              // mbarriers of full, then of empty stages
#define STAGING_AT ((FULL_AT + 16 * STAGES + 1023) / 1024 * 1024)
#define PANELS_IN_FLIGHT 2                          // Panels of C that a warp stores at once
#define PANEL_BYTES (32 * B_LD)                     // 16 rows of a panel of C
#define SHARED_ROWS_A (BM / (MULTICAST == 0 ? CLUSTER : 1))   // Rows of a tile of A that a block copies
#define SHARED_ROWS_B (BK / (MULTICAST == 1 ? CLUSTER : 1))

static_assert(ALIGNED, "rows of a tensor map are multiples of 16 bytes");
static_assert(SHARED_ROWS_A % 8 == 0 && SHARED_ROWS_B % 8 == 0, "a swizzle repeats after 8 rows");

// ---- Clusters ----

__device__ __forceinline__ u32 rank_in_cluster() {
    if (CLUSTER == 1) return 0;
    u32 rank;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
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

// ---- Ring of stages ----

// A place in the ring. `parity`: of the phase of full[stage] that the step completes.
struct Place {
    u32 base;
    u32 stage, parity;

    __device__ __forceinline__ u32 at() const { return base + stage * STAGE_BYTES; }
    __device__ __forceinline__ u32 full() const { return base + FULL_AT + 8 * stage; }
    __device__ __forceinline__ u32 empty() const { return base + FULL_AT + 8 * (STAGES + stage); }
    __device__ __forceinline__ void advance() {
        if (++stage < STAGES) return;
        stage = 0;
        parity ^= 1;
    }
};

// Before any use; a barrier of the cluster must follow.
__device__ __forceinline__ void init_ring(u32 base) {
    for (int i = 0; i < STAGES; ++i) {
        mbarrier_init(base + FULL_AT + 8 * i, 1);
        mbarrier_init(base + FULL_AT + 8 * (STAGES + i), CLUSTER * WARP_COUNT);
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

// This warp no longer reads a stage: told to all blocks that copy into it. Nothing was written, so that the
// scope is that of a block: with that of a cluster each arrival waits for a fence of the whole GPU.
__device__ __forceinline__ void release(const Place& place, int lane) {
    if (CLUSTER == 1) {
        if (lane == 0) mbarrier_arrive(place.empty());
    } else if (lane < CLUSTER) {
        asm volatile("{ .reg .b32 peer;\n"
                     "mapa.shared::cluster.u32 peer, %0, %1;\n"
                     "mbarrier.arrive.shared::cluster.b64 _, [peer]; }" ::"r"(place.empty()), "r"(lane) : "memory");
    }
}

// ---- The copying warp ----

// Copies the box at (row, column) of a map to `to`; `SHARED`: in all blocks of the cluster.
template <bool SHARED>
__device__ __forceinline__ void copy_box(u32 to, const CUtensorMap& map, int row, int column, u32 barrier) {
    if constexpr (SHARED)
        asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster"
                     " [%0], [%1, {%2, %3}], [%4], %5;"
                     ::"r"(to), "l"(&map), "r"(column), "r"(row), "r"(barrier), "h"((u16)((1 << CLUSTER) - 1)) : "memory");
    else
        asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
                     " [%0], [%1, {%2, %3}], [%4];"
                     ::"r"(to), "l"(&map), "r"(column), "r"(row), "r"(barrier) : "memory");
}

// Copies all steps of a unit, each once its stage is empty. One thread.
__device__ __forceinline__ void copy_steps(Place& place, const Work& work, const CUtensorMap& a_map, const CUtensorMap& b_map, u32 rank) {
    const u32 part_a = MULTICAST == 0 ? rank * SHARED_ROWS_A : 0, part_b = MULTICAST == 1 ? rank * SHARED_ROWS_B : 0;
    for (int i = 0; i < work.count; ++i, place.advance()) {
        const int k = (work.first + i) * BK;
        // The phase before the first one counts as completed.
        mbarrier_wait(place.empty(), place.parity ^ 1);
        mbarrier_expect(place.full(), STAGE_BYTES);
        copy_box<(CLUSTER > 1 && MULTICAST == 0)>(place.at() + part_a * (2 * BK), a_map, work.row0 + part_a, k, place.full());
#pragma unroll
        for (int n = 0; n < BN; n += B_LD)
            copy_box<(CLUSTER > 1 && MULTICAST == 1)>(place.at() + A_BYTES + n * (2 * BK) + part_b * (2 * B_LD), b_map, k + part_b,
                                                    work.column0 + n, place.full());
    }
}

// ---- The multiplying warps ----

// Adds the product of all steps of a unit to `c`, for the part at (m, n).
__device__ __forceinline__ void accumulate(float (&c)[MT][NT][4], Place& place, const Work& work, int m, int n, int lane) {
    Place before = place;
    pin_all(c);
#pragma unroll kUnroll
    for (int i = 0; i < work.count; ++i, place.advance()) {
        mbarrier_wait(place.full(), place.parity);
        start_products(c, place.at(), m, n);
        wait_products<WG_PENDING>();
        if (WG_PENDING == 0) {
            release(place, lane);
        } else if (i > 0) {
            release(before, lane);
            before.advance();
        }
    }
    if (WG_PENDING) {
        wait_products<0>();
        if (work.count > 0) release(before, lane);
    }
    pin_all(c);
}

// Stores the warp's part of C, whose first element is (row, column), by tensor copies: 16 rows of a panel at
// once, from shared memory of this warp in the swizzle of the map.
__device__ __forceinline__ void store_panels(const float (&c)[MT][NT][4], const CUtensorMap& c_map, u32 staging, int row, int column, int lane) {
    constexpr int TILES = B_LD / 8, PANELS = NT / TILES;
#pragma unroll
    for (int p = 0; p < MT * PANELS; ++p) {
        const int i = p / PANELS, j = p % PANELS * TILES;
        const u32 panel = staging + p % PANELS_IN_FLIGHT * PANEL_BYTES;
        if (lane == 0) asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(PANELS_IN_FLIGHT - 1) : "memory");
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
