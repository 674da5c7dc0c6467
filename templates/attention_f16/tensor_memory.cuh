// Core 4 of kernel.cu: tcgen05 with S, P and O in tensor memory, sm_100a and its like only.
//
// A group of four warps owns 128 rows of Q, and one thread of it starts their products. Tensor memory has 128 lanes, a
// row each, of 512 columns of 32 bits. Of these a group has BN for S, whose first half P takes as pairs of elements,
// and D for O. S passes through registers in the layout of mma tiles; O does where a maximum moves, and at the end.
//
// A group waits for its own products only, so that those of one run beside the softmax of another, of this block or
// of another one (FlashAttention-4). It has two mbarriers:
//
//     scores      the commit after S = Q Kt
//     values      the commit after O += P V
//
// Layouts and descriptors are those of the PTX ISA, "tensorcore 5th generation".

#define GROUPS (WARPS / 4)
#define GROUP_COLUMNS (BN + D)
#define USED (GROUPS * GROUP_COLUMNS)
#define ALLOCATED COLUMNS_FOR(USED)
#define GROUP_BARRIERS_AT (AFTER_RING + (USES_MBARRIER ? 16 * (STAGES_K + STAGES_V) : 0))
#define ADDRESS_AT (GROUP_BARRIERS_AT + 16 * GROUPS) // The address of the allocated columns, in shared memory

static_assert(USED <= 512, "tensor memory has 512 columns");

// ---- Tensor memory ----

// Once a block, before any use: allocates the columns and returns their address.
__device__ __forceinline__ u32 begin_tensor_memory(u32 base) {
    if (threadIdx.x == 0)
        for (int i = 0; i < 2 * GROUPS; ++i) mbarrier_init(base + GROUP_BARRIERS_AT + 8 * i, 1);
    if (threadIdx.x < 32) allocate_columns<ALLOCATED>(base + ADDRESS_AT);
    before_threads();
    __syncthreads();
    after_threads();
    return allocated_at(base + ADDRESS_AT);
}

// Frees the columns when all threads are done with them.
__device__ __forceinline__ void end_tensor_memory(u32 memory) {
    before_threads();
    __syncthreads();
    after_threads();
    if (threadIdx.x < 32) free_columns<ALLOCATED>(memory);
}

// Multiplies 16 rows of O by the factors of a step.
__device__ __forceinline__ void rescale_rows(u32 at, const Turn& turn) {
#pragma unroll
    for (int part = 0; part < D / 32; ++part) {
        float c[4][4];
        load_row_tiles(c, at + 32 * part);
        asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory");
        pin(c);
#pragma unroll
        for (int n = 0; n < 4; ++n)
#pragma unroll
            for (int i = 0; i < 4; ++i) c[n][i] *= turn.decay[i / 2];
        asm volatile("tcgen05.st.sync.aligned.16x256b.x4.b32 [%0],"
                     " {%1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16};"
                     ::"r"(at + 32 * part), FROM_TILE(c[0]), FROM_TILE(c[1]), FROM_TILE(c[2]), FROM_TILE(c[3]) : "memory");
    }
}

// Stores P of a warp's rows, rounded, over its scores.
__device__ __forceinline__ void store_p(const Scores& p, u32 at) {
#pragma unroll
    for (int mt = 0; mt < MT; ++mt)
#pragma unroll
        for (int kk = 0; kk < BN / 16; ++kk) {
            u32 a[4];
            p_fragment(a, p, mt, kk);
            asm volatile("tcgen05.st.sync.aligned.16x128b.x2.b32 [%0], {%1, %2, %3, %4};"
                         ::"r"(at + (16 * mt << 16) + 8 * kk), "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]) : "memory");
        }
}

// Before threads read or a product uses what this warp stored.
__device__ __forceinline__ void wait_for_stores() { asm volatile("tcgen05.wait::st.sync.aligned;" ::: "memory"); }

// ---- Products: one thread of a group ----

// S = Q Kt of one tile of K. `q`: the group's 128 rows.
__device__ __forceinline__ void start_scores(u32 s, u32 q, u32 k, u32 barrier) {
#pragma unroll
    for (int kk = 0; kk < D / 16; ++kk) {
        const u32 at = kk / 4 * 1024 + kk % 4 * 32;
        start_product(s, tile_descriptor<1>(q + at, 16, BAND), tile_descriptor<1>(k + at, 16, BAND), PRODUCT_FORM(128, BN, 0), kk > 0);
    }
    commit_to(barrier);
}

// O = P V of one tile of V, or O += P V if `adds`.
__device__ __forceinline__ void start_values(u32 o, u32 p, u32 v, bool adds, u32 barrier) {
#pragma unroll
    for (int kk = 0; kk < BN / 16; ++kk)
        start_product_of_memory(o, p + 8 * kk, tile_descriptor<1>(v + kk * (2 * BAND), 1024, BAND), PRODUCT_FORM(128, D, 1), adds || kk > 0);
    commit_to(barrier);
}

// ---- The steps of a warp that computes ----

// Turns scores into exponentials; O is still to be rescaled.
__device__ __forceinline__ void softmax(Scores& s, Rows& rows, Turn (&turns)[MT], float to_log) {
#pragma unroll
    for (int mt = 0; mt < MT; ++mt) {
        turns[mt] = new_maxima(s, rows, mt, to_log);
        rescale_sums(rows, mt, turns[mt]);
        exponentials(s, rows, mt, turns[mt], to_log);
    }
}

__device__ __forceinline__ void consume(Rows& rows, const QFragments&, const Ring& ring, const Work& work, u32 own, int row,
                                        int lane, float to_log) {
    if (work.count == 0) return;
    const int warp = threadIdx.x / 32 % 4, group = threadIdx.x / 128;
    const bool leads = threadIdx.x % 128 == 0;
    const u32 q = own - warp * (4 * BAND);                      // Of the first warp of the group
    const u32 scores = ring.base + GROUP_BARRIERS_AT + 16 * group, values = scores + 8;
    const u32 s_at = ring.memory + group * GROUP_COLUMNS, o_at = s_at + BN;
    const u32 lanes = 32 * warp << 16;                          // A warp reads and writes these only
#pragma unroll kUnroll
    for (int j = 0; j < work.count; ++j) {
        before_scores(ring, work, j);
        if (leads) {
            after_threads();
            start_scores(s_at, q, k_slot(ring, j), scores);
        }
        __syncwarp();
        mbarrier_wait(scores, ring.passed + j & 1);
        after_threads();
        after_scores(ring, work, j);
        Scores s;
        load_tiles(s, s_at + lanes);
        const int key0 = kv_tile(work, j) * BN;
        if (needs_mask(work.size, key0, row)) mask_scores(s, work.size, row, key0, lane);
        Turn turns[MT];
        softmax(s, rows, turns, to_log);
        store_p(s, s_at + lanes);
        if (PRODUCERS && j > 0) {
            mbarrier_wait(values, ring.passed + j - 1 & 1);
            after_threads();
            after_values(ring, work, j - 1);
        }
#pragma unroll
        for (int mt = 0; mt < MT; ++mt)
            if (j > 0 && __any_sync(0xffffffffu, turns[mt].moved)) rescale_rows(o_at + lanes + (16 * mt << 16), turns[mt]);
        wait_for_stores();
        before_threads();
        before_values(ring, work, j);
        asm volatile("bar.sync %0, 128;" ::"r"(2 + group) : "memory");
        if (leads) {
            after_threads();
            start_values(o_at, s_at, v_slot(ring, j), j > 0, values);
        }
        __syncwarp();
        if (!PRODUCERS || j + 1 == work.count) {
            mbarrier_wait(values, ring.passed + j & 1);
            after_threads();
            after_values(ring, work, j);
        }
    }
    load_tiles(rows.o, o_at + lanes);
}
