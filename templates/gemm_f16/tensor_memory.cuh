// Core 3 of kernel.cu: tcgen05 with sums in tensor memory, sm_100a and its like only.
//
// A block has six warps: four store, one copies (tensor_copies.cuh), one multiplies. One thread of the last starts
// products of WM rows, BN columns and 16 along K, which read A and B from shared memory; BM / WM of them fill the
// block's tile. With CLUSTER 2 a thread of the first block does so for both: a product has the WM rows of each block and
// BN columns, of whose B each block has half.
//
// Tensor memory has 128 lanes of 512 columns, 32 bits each. A row of sums has a lane; those of a tile, a set, have
// BM / WM * BN columns. With PERSISTENT there are two sets where they fit, so that one is stored while products fill the
// other. Set i has two mbarriers:
//
//     full[i]     the commit after the last product of a unit
//     empty[i]    one arrival of each storing warp of the pair
//
// Layouts and descriptors are those of the PTX ISA, "tensorcore 5th generation".

#define SET_COLUMNS (BM / WM * BN)
#define SETS (PERSISTENT && 2 * SET_COLUMNS <= 512 ? 2 : 1)
#define USED (SETS * SET_COLUMNS)
#define ALLOCATED COLUMNS_FOR(USED)
#define ADDRESS_AT (SUMS_AT + 32)                   // The address of the allocated columns, in shared memory

static_assert(SET_COLUMNS <= 512, "tensor memory has 512 columns");
static_assert(WM == 128 || (WM == 64 && PAIR == 1), "a product has 64 or 128 rows, that of a pair 256");
static_assert(BN % (16 * PAIR) == 0 && BN / PAIR % B_LD == 0, "each block of a pair has whole panels of B");
static_assert(CLUSTER <= 2 && (CLUSTER == 1 || MULTICAST == 1), "pairs share B");

#if PAIR == 2
#define CTA_GROUP ".cta_group::2"
#endif
#include "../tcgen05.cuh"

typedef Ring<SETS, SUMS_AT> SumsPlace;  // Sets of sums

// ---- Tensor memory ----

// Before any use of a mbarrier. One thread; `begin_tensor_memory` must follow.
__device__ __forceinline__ void init_barriers(u32 base) {
    Place::init(base, PAIR, 1);
    SumsPlace::init(base, 1, PAIR * WARP_COUNT);
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

// Returns the address of the allocated columns. `own`: this warp allocates them. A barrier of the cluster.
__device__ __forceinline__ u32 begin_tensor_memory(u32 base, bool own) {
    if (own) allocate_columns<ALLOCATED>(base + ADDRESS_AT);
    before_threads();
    cluster_barrier();
    after_threads();
    return allocated_at(base + ADDRESS_AT);
}

// Frees the columns when all threads are done with them. A barrier of the cluster.
__device__ __forceinline__ void end_tensor_memory(u32 memory, bool own) {
    before_threads();
    cluster_barrier();
    after_threads();
    if (own) free_columns<ALLOCATED>(memory);
}

// ---- The multiplying warp ----

// Arrives at a mbarrier, with a pair at that of both blocks, when all products so far are complete.
__device__ __forceinline__ void commit_sums(u32 barrier) {
#if PAIR == 2
    asm volatile("tcgen05.commit" CTA_GROUP ".mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%0], %1;"
                 ::"r"(barrier), "h"((u16)3) : "memory");
#else
    commit_to(barrier);
#endif
}

// Multiplies all steps of a unit into the next set. One thread.
__device__ __forceinline__ void multiply_steps(Place& place, SumsPlace& sums, const Work& work, u32 memory) {
    mbarrier_wait(sums.empty(), sums.parity ^ 1);
    after_threads();
#pragma unroll kUnroll
    for (int i = 0; i < work.count; ++i, place.advance()) {
        mbarrier_wait(place.full(), place.parity);
        after_threads();
        const u32 a = stage_of(place), b = a + A_BYTES;
#pragma unroll
        for (int kk = 0; kk < BK / 16; ++kk)
#pragma unroll
            for (int p = 0; p < BM / WM; ++p)
                start_product(memory + sums.slot * SET_COLUMNS + p * BN,
                              tile_descriptor<SWIZZLE_OF(BK)>(a + p * (2 * WM * A_LD) + 32 * kk, 16, 16 * A_LD),
                              tile_descriptor<SWIZZLE_OF(B_LD)>(b + kk * (32 * B_LD), 2 * BK * B_LD, 16 * B_LD), PRODUCT_FORM(WM * PAIR, BN, 1), i > 0 || kk > 0);
        commit_sums(place.empty());
    }
    commit_sums(sums.full());
    sums.advance();
}

// ---- The storing warps ----

__device__ __forceinline__ void wait_for_sums(const SumsPlace& sums) {
    mbarrier_wait(sums.full(), sums.parity);
    after_threads();
}

// This warp has loaded all of a set: told to the block that multiplies.
__device__ __forceinline__ void release_sums(const SumsPlace& sums, int lane) {
    before_threads();
    if (lane == 0) arrive_at(sums.empty(), 0);
}
