// The products of a warp group, for kernel.cu with CORE 1 and 2: wgmma, sm_90a only.
//
// A warp group, four warps, owns WM x WN of C. A step multiplies tiles that wgmma reads from shared
// memory itself, 64 rows, WN columns and 16 along K at once:
//
//          BK                          B_LD   B_LD
//        +----+                       +------+------+
//     BM |A   | rows of 2 BK bytes    |B     |B     | BK rows of 2 B_LD bytes, one panel of
//        |    | (K-major)             |      |      | columns after another (MN-major)
//        +----+                       +------+------+
//
// `chunk_at` puts the 16-byte chunks of a row of 128, 64 or 32 bytes where the swizzle of that width
// expects them.

#include "../wgmma.cuh"

// d += A B for 64 rows, WN columns and 16 along K. A is K-major, B is MN-major.
WGMMA_OF_SHARED(product, WN, ELEMENT, 0, 1)

// ---- Steps ----

// `pin` for all sums of a part.
__device__ __forceinline__ void pin_all(float (&c)[MT][NT][4]) {
#pragma unroll
    for (int i = 0; i < MT; ++i) pin(c[i]);
}

// Starts C += A B of one step, for the part at (m, n) of the tile.
__device__ __forceinline__ void start_products(float (&c)[MT][NT][4], u32 stage, int m, int n) {
    const u32 a = stage + m * (2 * A_LD), b = stage + A_BYTES + n / B_LD * (2 * BK * B_LD);
    begin_products();
#pragma unroll
    for (int kk = 0; kk < BK / 16; ++kk)
#pragma unroll
        for (int i = 0; i < MT; ++i)
            product<1>(c[i], descriptor<SWIZZLE_OF(BK)>(a + i * (MT_ROWS * 2 * A_LD) + 32 * kk, 16, 16 * A_LD),
                    descriptor<SWIZZLE_OF(B_LD)>(b + kk * (32 * B_LD), 2 * BK * B_LD, 16 * B_LD));
    commit_products();
}

#if CORE == 1
// Adds the product of all steps of a unit to `c`, for the part at (m, n).
__device__ __forceinline__ void accumulate(float (&c)[MT][NT][4], const Sizes& size, const Work& work, u32 base, const u16* a, const u16* b, int m, int n, int) {
    // Steps whose copies are on their way: each of the other stages is read by products, or is next.
    constexpr int AHEAD = STAGES - 1 - WG_PENDING;
#pragma unroll
    for (int i = 0; i < AHEAD; ++i) {
        issue(base, a, b, size, work, i);
        commit();
    }
    pin_all(c);
#pragma unroll kUnroll
    for (int i = 0; i < work.count; ++i) {
        if (STAGES == 1) {
            if (i > 0) __syncthreads();
            issue(base, a, b, size, work, i);
            commit();
        }
        wait_groups<(AHEAD > 0 ? AHEAD - 1 : 0)>();
        publish();
        // Step i is readable by all, and the products that read the stage of step i + AHEAD are done.
        __syncthreads();
        start_products(c, base + i % STAGES * STAGE_BYTES, m, n);
        if (STAGES > 1) {
            issue(base, a, b, size, work, i + AHEAD);
            commit();
        }
        wait_products<WG_PENDING>();
    }
    if (WG_PENDING) wait_products<0>();
    pin_all(c);
}
#else
// Before any use of a mbarrier; a barrier of the cluster must follow. One thread.
__device__ __forceinline__ void init_barriers(u32 base) {
    Place::init(base, 1, CLUSTER * WARP_COUNT);
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

// This warp no longer reads a stage: told to all blocks that copy into it. Nothing was written.
__device__ __forceinline__ void release(const Place& place, int lane) {
    if (lane < CLUSTER) arrive_at(place.empty(), lane);
}

// Adds the product of all steps of a unit to `c`, for the part at (m, n).
__device__ __forceinline__ void accumulate(float (&c)[MT][NT][4], Place& place, const Work& work, int m, int n, int lane) {
    Place before = place;
    pin_all(c);
#pragma unroll kUnroll
    for (int i = 0; i < work.count; ++i, place.advance()) {
        mbarrier_wait(place.full(), place.parity);
        start_products(c, stage_of(place), m, n);
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
#endif
