// Core 3 of kernel.cu: wgmma, sm_90a only.
//
// A warp group, four warps, owns 64 rows. S = Q Kt reads both tiles from shared memory, O += P V takes P
// from registers. With PIPE_QK a step starts S of the next tile and P V of this one, and computes the
// next exponentials while P V runs (FlashAttention-3, Shah et al. 2024, section 3.2):
//
//     tensor cores   S(j + 1)  O += P(j) V(j)          S(j + 2)  O += P(j + 1) V(j + 1)
//     the others               softmax of S(j + 1)               softmax of S(j + 2)

WGMMA_OF_SHARED(product_of_scores, BN, ELEMENT, 0, 0)
WGMMA_OF_REGISTERS(product_of_values, D, ELEMENT, 1)

typedef u32 PFragments[BN / 16][4];

// Starts S = Q Kt of one tile of K. `q`: the warp group's 64 rows.
__device__ __forceinline__ void start_scores(Scores& s, u32 q, u32 k) {
    begin_products();
#pragma unroll
    for (int kk = 0; kk < D / 16; ++kk) {
        const u32 at = kk / 4 * 1024 + kk % 4 * 32;
        const u64 a = descriptor<1>(q + at, 16, BAND), b = descriptor<1>(k + at, 16, BAND);
        if (kk == 0) product_of_scores<0>(s[0], a, b);
        else product_of_scores<1>(s[0], a, b);
    }
    commit_products();
}

// Starts O += P V of one tile of V.
__device__ __forceinline__ void start_values(Rows& rows, const PFragments& p, u32 v) {
    pin(rows.o[0]);
    begin_products();
#pragma unroll
    for (int kk = 0; kk < BN / 16; ++kk)
        product_of_values<1>(rows.o[0], p[kk], descriptor<1>(v + kk * (2 * BAND), 1024, BAND));
    commit_products();
}

// Masks the scores of step `j` and turns them into exponentials; O is still to be rescaled.
__device__ __forceinline__ Turn softmax(Scores& s, Rows& rows, const Work& work, int j, int row, int lane, float to_log) {
    const int key0 = kv_tile(work, j) * BN;
    if (needs_mask(work.size, key0, row)) mask_scores(s, work.size, row, key0, lane);
    const Turn turn = new_maxima(s, rows, 0, to_log);
    if (rescales(turn)) rescale_sums(rows, 0, turn);
    exponentials(s, rows, 0, turn, to_log);
    return turn;
}

__device__ __forceinline__ void pack_scores(PFragments& p, const Scores& s) {
#pragma unroll
    for (int kk = 0; kk < BN / 16; ++kk) p_fragment(p[kk], s, 0, kk);
}

// Turns of the warp groups, so that the softmax of one runs beside the products of another
// (FlashAttention-3, section 3.1). Named barriers from 2 on: a group waits at its own until the one
// before has started its products.
#define GROUPS (WARPS / 4)
__device__ __forceinline__ int warp_group() { return threadIdx.x / 128; }
__device__ __forceinline__ void signal_group(int group) {
    if (TURNS) asm volatile("bar.arrive %0, 256;" ::"r"(2 + group) : "memory");
}
__device__ __forceinline__ void wait_for_signal() {
    if (TURNS) asm volatile("bar.sync %0, 256;" ::"r"(2 + warp_group()) : "memory");
}

// S of step `j + 1` (`SCORES`) and O += P V of step `j` (`VALUES`).
template <bool SCORES, bool VALUES>
__device__ __forceinline__ void step(Scores& s, Rows& rows, PFragments& p, const Ring& ring, const Work& work, u32 q, int j,
                                     int row, int lane, float to_log) {
    Turn turn;
    before_scores(ring, work, j);
    if (SCORES) {
        wait_for_signal();
        start_scores(s, q, k_slot(ring, j + 1));
    }
    if (VALUES) {
        before_values(ring, work, j);
        start_values(rows, p, v_slot(ring, j));
    }
    if (SCORES) {
        // No products follow those of the last step.
        if (warp_group() < GROUPS - 1) signal_group(warp_group() + 1);
        else if (j + 2 < work.count) signal_group(0);
        wait_products<VALUES ? 1 : 0>();
        pin(s[0]);
        after_scores(ring, work, j);
        turn = softmax(s, rows, work, j + 1, row, lane, to_log);
    }
    if (VALUES) {
        wait_products<0>();
        pin(rows.o[0]);
        after_values(ring, work, j);
    }
    if (SCORES) {
        if (rescales(turn)) rescale_outputs(rows, 0, turn);
        pack_scores(p, s);
    }
}

// The steps of a warp that computes.
__device__ __forceinline__ void consume(Rows& rows, const QFragments&, const Ring& ring, const Work& work, u32 own, int row,
                                        int lane, float to_log) {
    // Of the first warp of the group.
    const u32 q = own - threadIdx.x / 32 % 4 * (2 * BAND);
    Scores s;
    PFragments p;
#if PIPE_QK
    if (work.count == 0) return;
    if (warp_group() == GROUPS - 1) signal_group(0);
    step<true, false>(s, rows, p, ring, work, q, -1, row, lane, to_log);
#pragma unroll kUnroll
    for (int j = 0; j + 1 < work.count; ++j) step<true, true>(s, rows, p, ring, work, q, j, row, lane, to_log);
    step<false, true>(s, rows, p, ring, work, q, work.count - 1, row, lane, to_log);
#else
#pragma unroll kUnroll
    for (int j = 0; j < work.count; ++j) {
        before_scores(ring, work, j);
        start_scores(s, q, k_slot(ring, j));
        wait_products<0>();
        pin(s[0]);
        after_scores(ring, work, j);
        const Turn turn = softmax(s, rows, work, j, row, lane, to_log);
        if (rescales(turn)) rescale_outputs(rows, 0, turn);
        pack_scores(p, s);
        before_values(ring, work, j);
        start_values(rows, p, v_slot(ring, j));
        wait_products<0>();
        pin(rows.o[0]);
        after_values(ring, work, j);
    }
#endif
}
