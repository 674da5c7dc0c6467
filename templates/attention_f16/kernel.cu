// Attention forward, fp16 or bf16 in and out, fp32 accumulation:
//
//   O[b,h,i,:] = sum_j softmax_j(scale * Q[b,h,i,:] . K[b,h,j,:]) V[b,h,j,:]
//
//   Q, O [B, H, S, D]   K, V [B, H, T, D]   row-major; CAUSAL hides keys j > i + T - S.
//
//            K/V rows, BN a step -->                 one thread block: BM rows of Q,
//          +------+------+------+---                 all of K and V, or one of SPLIT_KV parts;
//     BM   |  S = Q Kt   | next |   ...              S, the row maxima m and the row sums l
//     rows |  P = exp(S-m)      |                    never leave the chip.
//          +------+------+------+---
//     Q: shared memory or registers; K, V: rings of STAGES_K and STAGES_V tiles.
//
// Online softmax: Milakov and Gimelshein 2018. Tiling: Dao et al. 2022, 2023. The fragment layouts
// of mma.m16n8k16 and ldmatrix are those of the PTX ISA. Rows of K/V beyond T are read as zero.
// `scale` must be positive: maxima are taken before it is applied.

// B, H, S and T are arguments: one compilation serves all that are RAGGED alike.

// ---- Problem (set by the search space) ----
#ifndef D
#define D 64                // Head dimension
#endif
#ifndef CAUSAL
#define CAUSAL 0            // 1: row i sees keys j <= i + T - S
#endif
#ifndef RAGGED
#define RAGGED 1            // 0: T is a multiple of BN, so that no tile of keys ends beyond it
#endif
#ifndef BF16
#define BF16 0              // 1: elements are bf16, 0: fp16
#endif

// ---- Parameters ----
#ifndef CORE
#define CORE 2              // 0: scalar loops, 1: wmma with scores in shared memory, 2: mma.sync with scores in registers,
                            // 3: wgmma of warp groups with scores in registers (warpgroup.cuh, sm_90a only),
                            // 4: tcgen05 with scores, P and O in tensor memory (tensor_memory.cuh, sm_100a only)
#endif
#ifndef BM
#define BM 64               // Rows of Q a block
#endif
#ifndef BN
#define BN 64               // Rows of K and V a step
#endif
#ifndef WARPS
#define WARPS 4             // Warps that compute
#endif
#ifndef PRODUCERS
#define PRODUCERS 0         // Warps that only load K and V; 0: all warps load
#endif
#ifndef HANDOVER
#define HANDOVER 0          // Producer to consumer by 0: named barriers, 1: mbarrier
#endif
#ifndef STAGES_K
#define STAGES_K 2          // Tiles of K in shared memory
#endif
#ifndef STAGES_V
#define STAGES_V 1          // Tiles of V in shared memory
#endif
#ifndef BARRIERS
#define BARRIERS 2          // Block barriers a step: 1: K and V waited for together, 2: apart
#endif
#ifndef Q_PATH
#define Q_PATH 0            // Q stays in 0: shared memory; in registers, 1: by way of shared memory that K/V reuse, 2: straight from global
#endif
#ifndef SWIZZLE
#define SWIZZLE 1           // 1: 16-byte chunk c of row r lies at c ^ (r % 8)
#endif
#ifndef PAD
#define PAD 0               // Halves added to each shared row: 0, 8, 16
#endif
#ifndef G2S
#define G2S 2               // Global to shared: 0: 2-byte, 1: 16-byte through registers, 2: cp.async.cg, 3: cp.async.ca
#endif
#ifndef L2_HINT
#define L2_HINT 0           // cp.async prefetch into L2: 0, 64, 128, 256 bytes
#endif
#ifndef LDSM_K
#define LDSM_K 4            // 8x8 matrices an ldmatrix of K: 2, 4
#endif
#ifndef LDSM_V
#define LDSM_V 4            // 8x8 matrices an ldmatrix of V: 2, 4
#endif
#ifndef EXP2
#define EXP2 1              // 1: ex2.approx with log2(e) folded into the scale, 0: expf
#endif
#ifndef RESCALE
#define RESCALE 0           // 0: O follows every new maximum; else only one that rises by more than this, in log2
#endif
#ifndef PIPE_QK
#define PIPE_QK 0           // 1: Q K of the next step before the softmax of this one; core 3: beside P V of this one
#endif
#ifndef TURNS
#define TURNS 0             // Core 3: 1: a warp group starts its products after the one before has started its own
#endif
#ifndef KV_ORDER
#define KV_ORDER 0          // K/V tiles 0: first to last, 1: last to first
#endif
#ifndef CAUSAL_SKIP
#define CAUSAL_SKIP 2       // Causal: 0: all tiles, 1: no hidden tiles, 2: and masks only where a tile needs one
#endif
#ifndef GRID_ORDER
#define GRID_ORDER 0        // Fastest index 0: Q tile, 1: head, 2: Q tile from the last, 3: head, Q tiles from the last
#endif
#ifndef PERSISTENT
#define PERSISTENT 0        // 0: a block a tile; else blocks a multiprocessor that take tiles in turn
#endif
#ifndef SPLIT_KV
#define SPLIT_KV 1          // Blocks that share the keys of a Q tile; above 1 `combine` joins them
#endif
#ifndef COMBINE_ROWS
#define COMBINE_ROWS 1      // Rows a block of `combine`
#endif
#ifndef EPILOGUE
#define EPILOGUE 0          // O stored 0: 4 bytes a thread, 1: 16 through shared memory, 2: 16 after shuffles
#endif
#ifndef SCORE_PAD
#define SCORE_PAD 0         // Floats added to each shared row of scores (cores 0 and 1)
#endif
#ifndef UNROLL_KV
#define UNROLL_KV 1         // Steps unrolled
#endif
#ifndef MIN_BLOCKS
#define MIN_BLOCKS 0        // Blocks a multiprocessor asked of the register allocator; 0: no wish
#endif

// ---- Derived ----
// A constant, as nvcc does not replace macros in a #pragma.
constexpr int kUnroll = UNROLL_KV;
#define THREADS (32 * (WARPS + PRODUCERS))          // Threads a block
#define CONSUMERS (32 * WARPS)                      // Threads that compute
#define LOADERS (PRODUCERS ? 32 * PRODUCERS : THREADS) // Threads that load K and V
#define LD (D + PAD)                                // Halves from one shared row to the next
#define CHUNKS (D / 8)                              // 16-byte chunks a row
#define WM (BM / WARPS)                             // Q rows a warp (cores 2 to 4)
#define MT (CORE >= 2 ? WM / 16 : 1)                // mma row tiles a warp (cores 2 to 4)
#define TILE_BYTES (2 * BN * LD)                    // One tile of K or V, bytes
#define KV_BYTES ((STAGES_K + STAGES_V) * TILE_BYTES)
#define Q_BYTES (2 * BM * LD)
#define Q_OWN (Q_PATH == 0 ? Q_BYTES : 0)           // Q's own shared memory, bytes
#define ALIASED (Q_PATH == 1 || (Q_PATH == 2 && EPILOGUE == 1))  // Q or O share memory with K/V
#define RING_BYTES (ALIASED && Q_BYTES > KV_BYTES ? Q_BYTES : KV_BYTES)
#define USES_MBARRIER (PRODUCERS > 0 && HANDOVER == 1)
#define SCORE_LD (BN + SCORE_PAD)                   // Floats from one row of scores to the next
#define P_LD (BN + 8)                               // Halves from one row of P to the next (core 1)
#define O_LD (D + 4)                                // Floats from one row of O to the next (core 1)
#define SHARE (65536 / THREADS / 8 * 8)             // Most registers of a thread at launch
// Whether a warp group that only loads leaves registers to those that compute: only where O, S and P need
// more than that share, since a launch that takes less has none to move.
#define MOVES_REGISTERS (CORE >= 3 && PRODUCERS == 4 && WARPS > 4 && MIN_BLOCKS < 2 && (CORE == 4 || (2 * D + 3 * BN) / 4 + 32 > SHARE))
#define LOADER_REGISTERS 64
#define LANES (CORE == 0 ? CONSUMERS / BM : 1)      // Threads a Q row (core 0)

static_assert(BM % 16 == 0 && BN % 16 == 0 && D % 16 == 0, "mma tiles are 16 rows and 16 deep");
static_assert(CORE != 2 || BM % (16 * WARPS) == 0, "a warp owns whole 16-row tiles");
static_assert(CORE != 3 || (WARPS % 4 == 0 && WM == 16), "a warp group owns 64 rows");
static_assert(CORE != 4 || (WARPS % 4 == 0 && WM == 32), "a group of four warps owns 128 rows");
static_assert(CORE < 3 || (SWIZZLE && G2S >= 2 && Q_PATH == 0), "wgmma and tcgen05 read swizzled tiles that cp.async filled");
static_assert(CORE != 4 || (!PIPE_QK && (!PRODUCERS || HANDOVER == 1)), "a group waits for its scores, and its named barrier is no other's");
static_assert(CORE != 3 || !PIPE_QK || PRODUCERS || BARRIERS == 1,
              "a copy may replace K only after the products that read it, which run until the step's end");
static_assert(!TURNS || (CORE == 3 && PIPE_QK && WARPS > 4 && (!PRODUCERS || HANDOVER == 1)),
              "turns are those of several warp groups, and take named barriers");
static_assert(CORE != 0 || (CONSUMERS % BM == 0 && (LANES & (LANES - 1)) == 0 && LANES <= 32 && D % (2 * LANES) == 0),
              "a power of two of lanes shares a row, and each has whole pairs of columns");
static_assert(CORE >= 2 || (PRODUCERS == 0 && Q_PATH == 0 && PIPE_QK == 0 && !SWIZZLE && EPILOGUE < 2),
              "only cores from 2 on have producers, Q in registers, pipelined scores, swizzle and shuffled stores");
static_assert(BARRIERS == 2 || (STAGES_K > 1 && STAGES_V > 1), "one barrier a step needs two tiles of each");
static_assert(BARRIERS == 2 || PRODUCERS == 0, "producers do not use block barriers");
static_assert(!(SWIZZLE && PAD), "swizzle or padding, not both");
static_assert(!SWIZZLE || D % 64 == 0, "the swizzle permutes 8 chunks of 128 bytes");
static_assert(PRODUCERS == 0 || HANDOVER == 1 || STAGES_K + STAGES_V <= 7, "16 named barriers a block");
static_assert(EPILOGUE != 2 || D % 32 == 0, "four lanes trade four 8-column tiles");
static_assert(CORE != 0 || EPILOGUE == 0 || D % (8 * LANES) == 0, "a lane stores whole 16-byte chunks");
static_assert(EPILOGUE == 0 || SPLIT_KV == 1, "partial results are stored as fp32 directly");

typedef unsigned int u32;
typedef unsigned short u16;
typedef unsigned long long u64;

#if CORE == 3
#include "../wgmma.cuh"
#elif CORE == 4
#include "../tcgen05.cuh"
#include "../mbarrier.cuh"
#endif

// ---- Elements ----

#if BF16
#define ELEMENT "bf16"
#else
#define ELEMENT "f16"
#endif

// Two floats rounded to a pair of elements; `low` goes to the lower address.
__device__ __forceinline__ u32 pack(float low, float high) {
    u32 pair;
    asm("cvt.rn." ELEMENT "x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
    return pair;
}

// The two elements of a pair as floats.
__device__ __forceinline__ void unpack(u32 pair, float& low, float& high) {
#if BF16
    low = __uint_as_float(pair << 16);
    high = __uint_as_float(pair & 0xffff0000u);
#else
    asm("{ .reg .b16 a, b; mov.b32 {a, b}, %2; cvt.f32.f16 %0, a; cvt.f32.f16 %1, b; }"
        : "=f"(low), "=f"(high) : "r"(pair));
#endif
}

__device__ __forceinline__ float minus_infinity() { return __uint_as_float(0xff800000u); }

// The exponential of the softmax and the factor that brings a score to its argument: with EXP2 both
// are base 2, so that each score costs one multiply-add and one ex2.
__device__ __forceinline__ float exponential(float x) {
#if EXP2
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
#else
    return expf(x);
#endif
}
#define TO_LOG (EXP2 ? 1.4426950408889634f : 1.0f)
#define RESCALE_LOG (EXP2 ? (float)(RESCALE) : (float)(RESCALE) * 0.6931471805599453f)

// ---- Shared memory ----

extern __shared__ __align__(CORE >= 3 ? 1024 : 128) unsigned char shared_memory[];

// Shared-memory address of the first byte.
__device__ __forceinline__ u32 shared_base() {
    return (u32)__cvta_generic_to_shared(shared_memory);
}

#define Q_AT 0                                       // Its own rows, or over the K/V ring (Q_PATH 1)
#define K_AT Q_OWN
#define V_AT (K_AT + STAGES_K * TILE_BYTES)
#define AFTER_RING (Q_OWN + RING_BYTES)
#define MBARRIER_AT AFTER_RING                       // Cores from 2 on: 2 * (STAGES_K + STAGES_V) mbarriers
#define SCORES_AT AFTER_RING                         // Cores 0 and 1: BM rows of BN floats
#define P_AT (SCORES_AT + 4 * BM * SCORE_LD)         // Core 1: BM rows of BN halves
#define O_AT (P_AT + 2 * BM * P_LD)                  // Core 1: BM rows of D floats
#define STATS_AT (O_AT + 4 * BM * O_LD)              // Core 1: m and l of BM rows

// Byte offset of 16-byte chunk `chunk` of row `row` in a tile. Cores 3 and 4: eight rows of 64 columns lie
// together, as the swizzle of wgmma has them, and the next 64 columns of these rows after them.
__device__ __forceinline__ u32 chunk_at(int row, int chunk) {
    if (CORE >= 3) return row / 8 * (16 * LD) + chunk / 8 * 1024 + row % 8 * 128 + 16 * ((chunk ^ row) & 7);
    return row * (2 * LD) + 16 * (SWIZZLE ? chunk ^ (row & 7) : chunk);
}

// ---- Global to shared ----

// Copies 16 bytes to shared address `to`, or writes zeros where `inside` is false.
__device__ __forceinline__ void copy_chunk(u32 to, const u16* from, bool inside) {
#if G2S >= 2
#if G2S == 2
#define CP_ASYNC "cp.async.cg.shared.global"
#else
#define CP_ASYNC "cp.async.ca.shared.global"
#endif
#if L2_HINT == 64
#define CP_HINT ".L2::64B"
#elif L2_HINT == 128
#define CP_HINT ".L2::128B"
#elif L2_HINT == 256
#define CP_HINT ".L2::256B"
#else
#define CP_HINT ""
#endif
    // The source size: what is not read is filled with zeros.
    asm volatile(CP_ASYNC CP_HINT " [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(inside ? 16 : 0) : "memory");
#elif G2S == 1
    u32 x[4] = {0, 0, 0, 0};
    if (inside)
        asm volatile("ld.global.v4.u32 {%0, %1, %2, %3}, [%4];"
                     : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3]) : "l"(from));
    asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(to), "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]) : "memory");
#else
#pragma unroll
    for (int i = 0; i < 8; ++i) {
        u16 x = 0;
        if (inside) asm volatile("ld.global.u16 %0, [%1];" : "=h"(x) : "l"(from + i));
        asm volatile("st.shared.u16 [%0], %1;" ::"r"(to + 2 * i), "h"(x) : "memory");
    }
#endif
}

// Closes a group of copies.
__device__ __forceinline__ void commit() {
#if G2S >= 2
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

// Waits until at most `PENDING` groups of this thread are still under way.
template <int PENDING>
__device__ __forceinline__ void wait_groups() {
#if G2S >= 2
    asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
#endif
#if CORE >= 3
    publish();
#endif
}

// `COUNT` threads copy rows [first, first + ROWS) of a matrix of `rows` rows to a tile; WHOLE: none of
// them is beyond its end.
template <int ROWS, int COUNT, bool WHOLE>
__device__ __forceinline__ void load_rows(u32 tile, const u16* matrix, int first, int rows, int thread) {
    constexpr int STEPS = (ROWS * CHUNKS + COUNT - 1) / COUNT;
#pragma unroll
    for (int i = 0; i < STEPS; ++i) {
        const int index = thread + i * COUNT;
        // Where COUNT is a multiple of CHUNKS, a thread's chunk is the same in every step.
        const int row = COUNT % CHUNKS == 0 ? thread / CHUNKS + i * (COUNT / CHUNKS) : index / CHUNKS;
        const int chunk = COUNT % CHUNKS == 0 ? thread % CHUNKS : index % CHUNKS;
        if (ROWS * CHUNKS % COUNT == 0 || index < ROWS * CHUNKS) {
            const bool inside = WHOLE || first + row < rows;
            // A chunk that is not read still needs an address inside the matrix.
            copy_chunk(tile + chunk_at(row, chunk), matrix + (inside ? (first + row) * D + chunk * 8 : 0), inside);
        }
    }
}

// ---- Work ----

// The sizes of the problem.
struct Sizes {
    int heads;      // B * H
    int rows;       // S
    int keys;       // T

    // Q tiles a head.
    __device__ __forceinline__ int tiles() const { return (rows + BM - 1) / BM; }
    // Row i sees keys up to i + offset().
    __device__ __forceinline__ int offset() const { return keys - rows; }
};

// One unit of work: a Q tile of one head and a range of K/V tiles.
struct Work {
    int head;       // b * H + h
    int split;      // Part of the keys
    int row0;       // First Q row
    int first;      // First K/V tile
    int count;      // K/V tiles
    Sizes size;
};

__device__ __forceinline__ Work work_of(u32 tile, const Sizes& size) {
    Work work;
    work.size = size;
    // The fastest index is Q tile or head, then comes the part of the keys.
    const bool rows_first = GRID_ORDER == 0 || GRID_ORDER == 2;
    const u32 fastest = rows_first ? size.tiles() : size.heads;
    const u32 rest = tile / fastest, fast = tile - rest * fastest;
    work.split = rest % SPLIT_KV;
    work.head = rows_first ? rest / SPLIT_KV : fast;
    int m = rows_first ? fast : rest / SPLIT_KV;
    if (GRID_ORDER >= 2) m = size.tiles() - 1 - m;
    work.row0 = m * BM;
    int keys = size.keys;
    if (CAUSAL && CAUSAL_SKIP) {
        // The last row of the tile sees the most keys; none where there are more rows than keys.
        const int seen = work.row0 + BM + size.offset();
        keys = seen < 0 ? 0 : seen < keys ? seen : keys;
    }
    const int tiles = (keys + BN - 1) / BN;
    work.first = tiles * work.split / SPLIT_KV;
    work.count = tiles * (work.split + 1) / SPLIT_KV - work.first;
    return work;
}

// Number of the K/V tile of step `step`.
__device__ __forceinline__ int kv_tile(const Work& work, int step) {
    return KV_ORDER ? work.first + work.count - 1 - step : work.first + step;
}

// Whether a tile that starts at key `key0` hides a key from a row from `row` on.
__device__ __forceinline__ bool needs_mask(const Sizes& size, int key0, int row) {
    const bool ragged = RAGGED && key0 + BN > size.keys;
    const bool diagonal = CAUSAL && key0 + BN - 1 > row + size.offset();
    return CAUSAL && CAUSAL_SKIP < 2 ? true : ragged || diagonal;
}

// Whether row `row` sees key `key`.
__device__ __forceinline__ bool sees(const Sizes& size, int row, int key) {
    return (!RAGGED || key < size.keys) && (!CAUSAL || key <= row + size.offset());
}

// ---- The K/V rings ----
//
// Step j computes S from K(j), then adds P V(j). Without producers, all threads load; every issue
// point commits one group, empty past the end, so that the number of groups after a tile's own is
// the same in every step:
//
//   BARRIERS 2: before S(j): wait K(j), barrier, issue V(j + STAGES_V - 1)   [V(j - 1) is free]
//               before PV(j): wait V(j), barrier, issue K(j + STAGES_K)      [K(j) is free]
//   BARRIERS 1: before S(j): wait K(j) and V(j), barrier, issue K(j + STAGES_K - 1) and
//               V(j + STAGES_V - 1)
//
// With PIPE_QK, "K(j)" is the K of step j + 1, which S is computed from one step ahead.
// With producers, each tile has a full and an empty barrier instead.

struct Ring {
    const u16* k;   // K of the head
    const u16* v;   // V of the head
    u32 base;       // Shared memory
    int thread;     // Of the loaders
    int passed;     // Tiles of earlier units of work (mbarrier phases run on)
#if CORE == 4
    u32 memory;     // Tensor memory
#endif
};

__device__ __forceinline__ u32 k_slot(const Ring& ring, int i) {
    return ring.base + K_AT + (ring.passed + i) % STAGES_K * TILE_BYTES;
}
__device__ __forceinline__ u32 v_slot(const Ring& ring, int i) {
    return ring.base + V_AT + (ring.passed + i) % STAGES_V * TILE_BYTES;
}
__device__ __forceinline__ void issue_k(const Ring& ring, const Work& work, int i) {
    if (i >= 0 && i < work.count)
        load_rows<BN, LOADERS, !RAGGED>(k_slot(ring, i), ring.k, kv_tile(work, i) * BN, work.size.keys, ring.thread);
}
__device__ __forceinline__ void issue_v(const Ring& ring, const Work& work, int i) {
    if (i >= 0 && i < work.count)
        load_rows<BN, LOADERS, !RAGGED>(v_slot(ring, i), ring.v, kv_tile(work, i) * BN, work.size.keys, ring.thread);
}

#if PRODUCERS
#include "../mbarrier.cuh"

// Named barriers: 0 is the block's, 1 the consumers', then full K, full V, empty K, empty V.
// mbarriers: the same order from MBARRIER_AT.
#define RING_SLOTS (STAGES_K + STAGES_V)

__device__ __forceinline__ u32 mbarrier_of(const Ring& ring, int index) {
    return ring.base + MBARRIER_AT + 8 * index;
}
__device__ __forceinline__ void named_arrive(int index) {
    asm volatile("bar.arrive %0, %1;" ::"r"(2 + index), "n"(THREADS) : "memory");
}
__device__ __forceinline__ void named_sync(int index) {
    asm volatile("bar.sync %0, %1;" ::"r"(2 + index), "n"(THREADS) : "memory");
}

// Once a block, before any use; a block barrier must follow.
__device__ __forceinline__ void init_mbarriers(const Ring& ring) {
    for (int i = 0; i < 2 * RING_SLOTS; ++i) {
        const u32 arrivals = i < RING_SLOTS ? 32 * PRODUCERS : WARPS;
        mbarrier_init(mbarrier_of(ring, i), arrivals);
    }
}

// Consumer: waits until tile i of a ring of `STAGES` is full. `BASE` is 0 for K, STAGES_K for V.
template <int BASE, int STAGES>
__device__ __forceinline__ void wait_full(const Ring& ring, int i) {
    const int at = ring.passed + i;
    if (HANDOVER == 1) {
        mbarrier_wait(mbarrier_of(ring, BASE + at % STAGES), at / STAGES & 1);
#if CORE >= 3
        publish();
#endif
    } else
        named_sync(BASE + at % STAGES);
}

// Consumer: this warp no longer reads tile i.
template <int BASE, int STAGES>
__device__ __forceinline__ void release(const Ring& ring, const Work& work, int i) {
    const int at = ring.passed + i;
    if (HANDOVER == 1) {
        __syncwarp();
        if (threadIdx.x % 32 == 0) mbarrier_arrive(mbarrier_of(ring, RING_SLOTS + BASE + at % STAGES));
    } else if (i + STAGES < work.count) {
        // An arrival that no producer will wait for must not be left in the barrier.
        named_arrive(RING_SLOTS + BASE + at % STAGES);
    }
}

// Producer: waits until the slot of tile i is free.
template <int BASE, int STAGES>
__device__ __forceinline__ void wait_empty(const Ring& ring, int i) {
    const int at = ring.passed + i;
    if (HANDOVER == 1) {
        if (at >= STAGES) mbarrier_wait(mbarrier_of(ring, RING_SLOTS + BASE + at % STAGES), (at / STAGES - 1) & 1);
    } else if (i >= STAGES) {
        named_sync(RING_SLOTS + BASE + at % STAGES);
    }
}

// Named barriers say "full" only once the copies have landed: this many tiles may be in flight. A
// producer that waits for a slot has then already announced all that its consumers need to free it.
#define FLIGHT (2 * (STAGES_K < STAGES_V ? STAGES_K : STAGES_V) - 1 - PIPE_QK)

struct Flight {
    int barrier[FLIGHT + 1];    // Youngest first; -1: none
};

// Producer: announces the tile that was just issued, now or when it has landed.
__device__ __forceinline__ void announce(const Ring& ring, Flight& flight, int index) {
#if HANDOVER == 1
#if G2S >= 2
    asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(mbarrier_of(ring, index)) : "memory");
#else
    mbarrier_arrive(mbarrier_of(ring, index));
#endif
#else
    commit();
#pragma unroll
    for (int i = FLIGHT; i > 0; --i) flight.barrier[i] = flight.barrier[i - 1];
    flight.barrier[0] = index;
    wait_groups<FLIGHT>();
    if (flight.barrier[FLIGHT] >= 0) named_arrive(flight.barrier[FLIGHT]);
    flight.barrier[FLIGHT] = -1;
#endif
}

// The whole loop of a producer warp over one unit of work, in the order in which tiles are used.
__device__ __forceinline__ void produce(const Ring& ring, const Work& work) {
    Flight flight;
#pragma unroll
    for (int i = 0; i <= FLIGHT; ++i) flight.barrier[i] = -1;
    for (int j = -PIPE_QK; j < work.count; ++j) {
        const int i = j + PIPE_QK;
        if (i < work.count) {
            wait_empty<0, STAGES_K>(ring, i);
            issue_k(ring, work, i);
            announce(ring, flight, (ring.passed + i) % STAGES_K);
        }
        if (j >= 0) {
            wait_empty<STAGES_K, STAGES_V>(ring, j);
            issue_v(ring, work, j);
            announce(ring, flight, STAGES_K + (ring.passed + j) % STAGES_V);
        }
    }
    if (HANDOVER == 0) {
        wait_groups<0>();
#pragma unroll
        for (int i = FLIGHT; i >= 0; --i)
            if (flight.barrier[i] >= 0) named_arrive(flight.barrier[i]);
    }
}
#endif

// Fills the rings before the first step, as if the steps before it had issued.
__device__ __forceinline__ void prime(const Ring& ring, const Work& work) {
#if !PRODUCERS
    constexpr int K_DEPTH = BARRIERS == 2 ? STAGES_K : STAGES_K - 1;
    constexpr int DEPTH = K_DEPTH > STAGES_V - 1 ? K_DEPTH : STAGES_V - 1;
#pragma unroll
    for (int j = -DEPTH; j < 0; ++j) {
        // V(i) is issued in step i - STAGES_V + 1, K(i) in step i - K_DEPTH.
        issue_v(ring, work, j - PIPE_QK + STAGES_V - 1);
        if (BARRIERS == 2) commit();
        issue_k(ring, work, j + K_DEPTH);
        commit();
    }
#endif
}

// Before S: K(i) is readable by all. `j` counts steps, from -PIPE_QK on.
__device__ __forceinline__ void before_scores(const Ring& ring, const Work& work, int j) {
#if PRODUCERS
    if (j + PIPE_QK < work.count) wait_full<0, STAGES_K>(ring, j + PIPE_QK);
#elif BARRIERS == 2
    wait_groups<2 * (STAGES_K - 1)>();
    __syncthreads();
    issue_v(ring, work, j + STAGES_V - 1);
    commit();
#else
    wait_groups<(STAGES_K < STAGES_V ? STAGES_K : STAGES_V) - 2>();
    __syncthreads();
    issue_v(ring, work, j + STAGES_V - 1);
    issue_k(ring, work, j + PIPE_QK + STAGES_K - 1);
    commit();
#endif
}

// After S: this warp no longer reads K.
__device__ __forceinline__ void after_scores(const Ring& ring, const Work& work, int j) {
#if PRODUCERS
    if (j + PIPE_QK < work.count) release<0, STAGES_K>(ring, work, j + PIPE_QK);
#endif
}

// Before PV: V(j) is readable by all.
__device__ __forceinline__ void before_values(const Ring& ring, const Work& work, int j) {
#if PRODUCERS
    if (j >= 0) wait_full<STAGES_K, STAGES_V>(ring, j);
#elif BARRIERS == 2
    wait_groups<2 * (STAGES_V - 1)>();
    __syncthreads();
    issue_k(ring, work, j + PIPE_QK + STAGES_K);
    commit();
#endif
}

// After PV: this warp no longer reads V(j).
__device__ __forceinline__ void after_values(const Ring& ring, const Work& work, int j) {
#if PRODUCERS
    if (j >= 0) release<STAGES_K, STAGES_V>(ring, work, j);
#endif
}

// A barrier of the warps that compute.
__device__ __forceinline__ void sync_consumers() {
    asm volatile("bar.sync 1, %0;" ::"n"(CONSUMERS) : "memory");
}

// A barrier of the whole block that warps reach from different places: an instruction of its own, so
// not barrier 0, at a time when the consumers do not use theirs.
__device__ __forceinline__ void sync_roles() {
    asm volatile("bar.sync 1, %0;" ::"n"(THREADS) : "memory");
}

// Row `row` of a unit's partial result: D sums, then the maximum (in the exponent's base) and the
// sum of the exponentials.
__device__ __forceinline__ float* partial_row(float* partial, const Work& work, int row) {
    return partial + ((u64)(work.split * work.size.heads + work.head) * work.size.rows + row) * (D + 2);
}

// ---- Cores 2 to 4: scores in registers, a warp owns WM whole rows ----
//
// Accumulator tile of m16n8: thread (g = lane / 4, t = lane % 4) holds rows g and g + 8, columns
// 2t and 2t + 1. Two neighbouring tiles of S, rounded, are the A fragment of P for one k16 step. wgmma
// gives a warp the same part of its 16 rows.

#if CORE >= 2

struct Rows {
    float o[MT][D / 8][4];  // Accumulated sum of P V
    float m[MT][2];         // Reference maximum of rows g and g + 8, before the scale
    float l[MT][2];         // This thread's part of the row sum
};

typedef float Scores[MT][BN / 8][4];
typedef u32 QFragments[MT][D / 16][4];

__device__ __forceinline__ void mma(float (&c)[4], const u32 (&a)[4], u32 b0, u32 b1) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32." ELEMENT "." ELEMENT ".f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

__device__ __forceinline__ void ldmatrix4(u32 (&x)[4], u32 at) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3]) : "r"(at) : "memory");
}
__device__ __forceinline__ void ldmatrix2(u32& x, u32& y, u32 at) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];" : "=r"(x), "=r"(y) : "r"(at) : "memory");
}
__device__ __forceinline__ void ldmatrix4_trans(u32 (&x)[4], u32 at) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3]) : "r"(at) : "memory");
}
__device__ __forceinline__ void ldmatrix2_trans(u32& x, u32& y, u32 at) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];" : "=r"(x), "=r"(y) : "r"(at) : "memory");
}

// The A fragments of k16 step `kk` of this warp's Q rows, from shared memory.
__device__ __forceinline__ void q_fragment(u32 (&a)[4], u32 q, int mt, int kk, int lane) {
    ldmatrix4(a, q + chunk_at(16 * mt + lane % 16, 2 * kk + lane / 16));
}

// All A fragments of this warp's Q rows, straight from global memory.
__device__ __forceinline__ void q_from_global(QFragments& fragments, const u16* q, int row, int rows, int lane) {
#pragma unroll
    for (int mt = 0; mt < MT; ++mt)
#pragma unroll
        for (int kk = 0; kk < D / 16; ++kk)
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                const int r = row + 16 * mt + lane / 4 + 8 * (i % 2);
                const int c = 16 * kk + 2 * (lane % 4) + 8 * (i / 2);
                fragments[mt][kk][i] = r < rows ? *(const u32*)(q + r * D + c) : 0u;
            }
}

// S = Q Kt of one tile of K.
__device__ __forceinline__ void scores_of(Scores& s, const QFragments& fragments, u32 q, u32 k, int lane) {
#pragma unroll
    for (int mt = 0; mt < MT; ++mt)
#pragma unroll
        for (int n = 0; n < BN / 8; ++n)
#pragma unroll
            for (int i = 0; i < 4; ++i) s[mt][n][i] = 0.0f;
#pragma unroll
    for (int kk = 0; kk < D / 16; ++kk) {
        u32 a[MT][4];
#pragma unroll
        for (int mt = 0; mt < MT; ++mt) {
            if (Q_PATH == 0)
                q_fragment(a[mt], q, mt, kk, lane);
            else
                for (int i = 0; i < 4; ++i) a[mt][i] = fragments[mt][kk][i];
        }
#pragma unroll
        for (int n = 0; n < BN / 16; ++n) {
            u32 b[4];
            // Matrices: keys 0-7 then 8-15, each with columns 0-7 then 8-15 of the k16 step.
#if LDSM_K == 4
            ldmatrix4(b, k + chunk_at(16 * n + lane % 8 + lane / 16 * 8, 2 * kk + lane / 8 % 2));
#else
            ldmatrix2(b[0], b[1], k + chunk_at(16 * n + lane % 8, 2 * kk + lane / 8 % 2));
            ldmatrix2(b[2], b[3], k + chunk_at(16 * n + 8 + lane % 8, 2 * kk + lane / 8 % 2));
#endif
#pragma unroll
            for (int mt = 0; mt < MT; ++mt) {
                mma(s[mt][2 * n], a[mt], b[0], b[1]);
                mma(s[mt][2 * n + 1], a[mt], b[2], b[3]);
            }
        }
    }
}

// Minus infinity where a row does not see a key.
__device__ __forceinline__ void mask_scores(Scores& s, const Sizes& size, int row, int key0, int lane) {
#pragma unroll
    for (int mt = 0; mt < MT; ++mt)
#pragma unroll
        for (int n = 0; n < BN / 8; ++n)
#pragma unroll
            for (int i = 0; i < 4; ++i)
                if (!sees(size, row + 16 * mt + lane / 4 + 8 * (i / 2), key0 + 8 * n + 2 * (lane % 4) + i % 2))
                    s[mt][n][i] = minus_infinity();
}

// The largest score of row half `h` of a tile, over the four threads that share the row.
__device__ __forceinline__ float row_maximum(const Scores& s, int mt, int h) {
    float top = minus_infinity();
#pragma unroll
    for (int n = 0; n < BN / 8; ++n) top = fmaxf(top, fmaxf(s[mt][n][2 * h], s[mt][n][2 * h + 1]));
    top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, 1));
    return fmaxf(top, __shfl_xor_sync(0xffffffffu, top, 2));
}

// What a step does to the sums so far of row halves 0 and 1 of a tile.
struct Turn {
    float shift[2];     // What the exponentials' arguments are reduced by
    float decay[2];     // The factor of O and l
    bool moved;         // Whether a maximum of this thread's rows moved
};

// Brings the maxima up to a tile of scores.
__device__ __forceinline__ Turn new_maxima(const Scores& s, Rows& rows, int mt, float to_log) {
    Turn turn;
    turn.moved = false;
#pragma unroll
    for (int h = 0; h < 2; ++h) {
        const float old = rows.m[mt][h], top = fmaxf(old, row_maximum(s, mt, h));
        // A maximum that rises a little may stay behind: P is then at most 2^RESCALE.
        const bool moves = RESCALE == 0 || top * to_log > old * to_log + RESCALE_LOG;
        const float now = moves ? top : old;
        turn.moved |= now != old;
        // A row that has seen no key yet has no maximum; any finite shift serves.
        turn.shift[h] = now == minus_infinity() ? 0.0f : now * to_log;
        turn.decay[h] = exponential(old * to_log - turn.shift[h]);
        rows.m[mt][h] = now;
    }
    return turn;
}

// Whether O and l of the warp's rows change.
__device__ __forceinline__ bool rescales(const Turn& turn) {
    return RESCALE == 0 || __any_sync(0xffffffffu, turn.moved);
}

__device__ __forceinline__ void rescale_outputs(Rows& rows, int mt, const Turn& turn) {
#pragma unroll
    for (int n = 0; n < D / 8; ++n)
#pragma unroll
        for (int i = 0; i < 4; ++i) rows.o[mt][n][i] *= turn.decay[i / 2];
}

__device__ __forceinline__ void rescale_sums(Rows& rows, int mt, const Turn& turn) {
#pragma unroll
    for (int h = 0; h < 2; ++h) rows.l[mt][h] *= turn.decay[h];
}

// Turns scores into exponentials and adds them to l.
__device__ __forceinline__ void exponentials(Scores& s, Rows& rows, int mt, const Turn& turn, float to_log) {
#pragma unroll
    for (int n = 0; n < BN / 8; ++n)
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            s[mt][n][i] = exponential(s[mt][n][i] * to_log - turn.shift[i / 2]);
            rows.l[mt][i / 2] += s[mt][n][i];
        }
}

// The A fragment of P for k16 step `kk`.
__device__ __forceinline__ void p_fragment(u32 (&a)[4], const Scores& p, int mt, int kk) {
#pragma unroll
    for (int i = 0; i < 4; ++i)
        a[i] = pack(p[mt][2 * kk + i / 2][2 * (i % 2)], p[mt][2 * kk + i / 2][2 * (i % 2) + 1]);
}

// ---- Cores 3 and 4 ----

// From one group of eight rows of a tile to the next, bytes.
#define BAND (16 * LD)

#if MOVES_REGISTERS
__device__ __forceinline__ void release_registers() {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(LOADER_REGISTERS));
}
__device__ __forceinline__ void request_registers() {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"((SHARE + (SHARE - LOADER_REGISTERS) * 128 / CONSUMERS) / 8 * 8));
}
#endif

#if CORE == 2

// Turns scores into exponentials and brings O and l to the new maxima.
__device__ __forceinline__ void softmax(Scores& s, Rows& rows, float to_log) {
#pragma unroll
    for (int mt = 0; mt < MT; ++mt) {
        const Turn turn = new_maxima(s, rows, mt, to_log);
        if (rescales(turn)) {
            rescale_sums(rows, mt, turn);
            rescale_outputs(rows, mt, turn);
        }
        exponentials(s, rows, mt, turn, to_log);
    }
}

// O += P V of one tile of V.
__device__ __forceinline__ void add_values(Rows& rows, const Scores& p, u32 v, int lane) {
#pragma unroll
    for (int kk = 0; kk < BN / 16; ++kk) {
        u32 a[MT][4];
#pragma unroll
        for (int mt = 0; mt < MT; ++mt) p_fragment(a[mt], p, mt, kk);
#pragma unroll
        for (int n = 0; n < D / 16; ++n) {
            u32 b[4];
            // Matrices, transposed on the way: columns 0-7 then 8-15, each with keys 0-7 then 8-15.
#if LDSM_V == 4
            ldmatrix4_trans(b, v + chunk_at(16 * kk + lane % 16, 2 * n + lane / 16));
#else
            ldmatrix2_trans(b[0], b[1], v + chunk_at(16 * kk + lane % 16, 2 * n));
            ldmatrix2_trans(b[2], b[3], v + chunk_at(16 * kk + lane % 16, 2 * n + 1));
#endif
#pragma unroll
            for (int mt = 0; mt < MT; ++mt) {
                mma(rows.o[mt][2 * n], a[mt], b[0], b[1]);
                mma(rows.o[mt][2 * n + 1], a[mt], b[2], b[3]);
            }
        }
    }
}

// The steps of a warp that computes.
__device__ __forceinline__ void consume(Rows& rows, const QFragments& fragments, const Ring& ring, const Work& work, u32 q,
                                        int row, int lane, float to_log) {
    Scores ahead;
#pragma unroll kUnroll
    for (int j = -PIPE_QK; j < work.count; ++j) {
        Scores s;
        if (PIPE_QK && j >= 0)
#pragma unroll
            for (int mt = 0; mt < MT; ++mt)
#pragma unroll
                for (int n = 0; n < BN / 8; ++n)
#pragma unroll
                    for (int i = 0; i < 4; ++i) s[mt][n][i] = ahead[mt][n][i];
        const int next = j + PIPE_QK;
        before_scores(ring, work, j);
        if (next < work.count) {
            scores_of(PIPE_QK ? ahead : s, fragments, q, k_slot(ring, next), lane);
            const int key0 = kv_tile(work, next) * BN;
            if (needs_mask(work.size, key0, row)) mask_scores(PIPE_QK ? ahead : s, work.size, row, key0, lane);
        }
        after_scores(ring, work, j);
        if (j >= 0) softmax(s, rows, to_log);
        before_values(ring, work, j);
        if (j >= 0) add_values(rows, s, v_slot(ring, j), lane);
        after_values(ring, work, j);
    }
}

#elif CORE == 3
#include "warpgroup.cuh"
#else
#include "tensor_memory.cuh"
#endif

// Stores a warp's rows of a split's partial result.
__device__ __forceinline__ void store_partial(const Rows& rows, const Work& work, float* partial, int row, int lane, float to_log) {
#pragma unroll
    for (int mt = 0; mt < MT; ++mt)
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            const int r = row + 16 * mt + lane / 4 + 8 * h;
            if (r >= work.size.rows) continue;
            float* to = partial_row(partial, work, r);
#pragma unroll
            for (int n = 0; n < D / 8; ++n)
                *(float2*)(to + 8 * n + 2 * (lane % 4)) = make_float2(rows.o[mt][n][2 * h], rows.o[mt][n][2 * h + 1]);
            if (lane % 4 == 0) *(float2*)(to + D) = make_float2(rows.m[mt][h] * to_log, rows.l[mt][h]);
        }
}

// Four threads, each with one pair of each of four 8-column tiles, trade until thread t has all
// pairs of tile t: a 4 x 4 transposition in two rounds.
__device__ __forceinline__ void trade_pairs(u32 (&x)[4], int lane) {
#pragma unroll
    for (int bit = 1; bit <= 2; bit *= 2)
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            const int low = bit == 1 ? 2 * i : i, high = low + bit;
            const u32 got = __shfl_xor_sync(0xffffffffu, lane & bit ? x[low] : x[high], bit);
            if (lane & bit) x[low] = got; else x[high] = got;
        }
}

// Stores a warp's rows of O before row `end`. `staging`: shared memory for WM rows, free for this warp.
__device__ __forceinline__ void store_rows(const Rows& rows, u16* o, u32 staging, int row, int end, int lane) {
#pragma unroll
    for (int mt = 0; mt < MT; ++mt)
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            const int local = 16 * mt + lane / 4 + 8 * h;
            u32 pair[D / 8];
#pragma unroll
            for (int n = 0; n < D / 8; ++n) pair[n] = pack(rows.o[mt][n][2 * h], rows.o[mt][n][2 * h + 1]);
#if EPILOGUE == 0
            u32* to = (u32*)(o + (row + local) * D) + lane % 4;
            if (row + local < end)
#pragma unroll
                for (int n = 0; n < D / 8; ++n) to[4 * n] = pair[n];
#elif EPILOGUE == 1
#pragma unroll
            for (int n = 0; n < D / 8; ++n)
                asm volatile("st.shared.u32 [%0], %1;" ::"r"(staging + chunk_at(local, n) + 4 * (lane % 4)), "r"(pair[n]) : "memory");
#else
            uint4* to = (uint4*)(o + (row + local) * D) + lane % 4;
#pragma unroll
            for (int n = 0; n < D / 8; n += 4) {
                u32 x[4] = {pair[n], pair[n + 1], pair[n + 2], pair[n + 3]};
                trade_pairs(x, lane);
                if (row + local < end) to[n] = make_uint4(x[0], x[1], x[2], x[3]);
            }
#endif
        }
#if EPILOGUE == 1
    __syncwarp();
#pragma unroll
    for (int i = 0; i < (WM * CHUNKS + 31) / 32; ++i) {
        const int index = lane + 32 * i, local = index / CHUNKS, chunk = index % CHUNKS;
        if (index < WM * CHUNKS && row + local < end) {
            uint4 x;
            asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                         : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w) : "r"(staging + chunk_at(local, chunk)) : "memory");
            *(uint4*)(o + (row + local) * D + chunk * 8) = x;
        }
    }
#endif
}

// Divides by the row sums, which the four threads of a row still hold in parts.
__device__ __forceinline__ void finish_rows(Rows& rows) {
#pragma unroll
    for (int mt = 0; mt < MT; ++mt)
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            float l = rows.l[mt][h];
            l += __shfl_xor_sync(0xffffffffu, l, 1);
            l += __shfl_xor_sync(0xffffffffu, l, 2);
            rows.l[mt][h] = l;
            if (SPLIT_KV > 1) continue;
            // A row that sees no key is zero.
            const float inverse = l > 0.0f ? 1.0f / l : 0.0f;
#pragma unroll
            for (int n = 0; n < D / 8; ++n) {
                rows.o[mt][n][2 * h] *= inverse;
                rows.o[mt][n][2 * h + 1] *= inverse;
            }
        }
}

// One unit of work of the warps that compute.
__device__ __forceinline__ void attend(const Ring& ring, const Work& work, const u16* q, u16* o, float* partial, float scale) {
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int row = work.row0 + warp * WM;
    const u32 own = ring.base + Q_AT + warp * WM * (2 * LD);    // This warp's rows of Q in shared memory
    const float to_log = scale * TO_LOG;
    QFragments fragments;
    Rows rows;
#pragma unroll
    for (int mt = 0; mt < MT; ++mt) {
#pragma unroll
        for (int n = 0; n < D / 8; ++n)
#pragma unroll
            for (int i = 0; i < 4; ++i) rows.o[mt][n][i] = 0.0f;
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            rows.m[mt][h] = minus_infinity();
            rows.l[mt][h] = 0.0f;
        }
    }
    if (work.count > 0) {
        if (Q_PATH == 2) q_from_global(fragments, q, row, work.size.rows, lane);
        else load_rows<WM, 32, false>(own, q, row, work.size.rows, lane);
        if (Q_PATH == 1 || (Q_PATH == 0 && PRODUCERS)) {
            commit();
            wait_groups<0>();
            // The products of a warp group read the rows of all its warps.
            if (CORE >= 3) sync_consumers();
            else __syncwarp();
        }
        if (Q_PATH == 1) {
#pragma unroll
            for (int mt = 0; mt < MT; ++mt)
#pragma unroll
                for (int kk = 0; kk < D / 16; ++kk) q_fragment(fragments[mt][kk], own, mt, kk, lane);
        }
    }
    // All Q rows are in registers before K and V take their place.
    if (Q_PATH == 1) sync_roles();
    prime(ring, work);
    consume(rows, fragments, ring, work, own, row, lane, to_log);
    finish_rows(rows);
    if (SPLIT_KV > 1) {
        store_partial(rows, work, partial, row, lane, to_log);
        return;
    }
    // O is staged over this warp's Q rows, or over K and V when all warps have read them.
    if (EPILOGUE == 1) {
        if (Q_PATH == 0 && CORE == 2) __syncwarp();
        else sync_consumers();
    }
    store_rows(rows, o, own, row, work.size.rows, lane);
}
#endif

// ---- Core 1: wmma, scores and O in shared memory ----
//
// The 16 x 16 tiles of S and of O are dealt to the warps in turn; the softmax is done a row a warp.

#if CORE == 1

#if BF16
#define AB_REGISTERS 4
#define AB_LIST "{%0, %1, %2, %3}"
#define AB_OUT(x) "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
#define AB_AT "[%4], %5"
#define MMA_TYPES "f32.bf16.bf16.f32"
#define A_LIST "{%8, %9, %10, %11}"
#define B_LIST "{%12, %13, %14, %15}"
#define AB_IN(x) "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3])
#else
#define AB_REGISTERS 8
#define AB_LIST "{%0, %1, %2, %3, %4, %5, %6, %7}"
#define AB_OUT(x) "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3]), "=r"(x[4]), "=r"(x[5]), "=r"(x[6]), "=r"(x[7])
#define AB_AT "[%8], %9"
#define MMA_TYPES "f32.f32"
#define A_LIST "{%8, %9, %10, %11, %12, %13, %14, %15}"
#define B_LIST "{%16, %17, %18, %19, %20, %21, %22, %23}"
#define AB_IN(x) "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(x[4]), "r"(x[5]), "r"(x[6]), "r"(x[7])
#endif
#define C_LIST "{%0, %1, %2, %3, %4, %5, %6, %7}"
#define C_INOUT(c) "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]), "+f"(c[4]), "+f"(c[5]), "+f"(c[6]), "+f"(c[7])

typedef u32 Fragment[AB_REGISTERS];

__device__ __forceinline__ void load_a(Fragment& x, u32 at, int stride) {
    asm volatile("wmma.load.a.sync.aligned.row.m16n16k16.shared." ELEMENT " " AB_LIST ", " AB_AT ";" : AB_OUT(x) : "r"(at), "r"(stride) : "memory");
}
// B from rows that are its columns (K, for K transposed), or from its own rows (V).
__device__ __forceinline__ void load_b_columns(Fragment& x, u32 at, int stride) {
    asm volatile("wmma.load.b.sync.aligned.col.m16n16k16.shared." ELEMENT " " AB_LIST ", " AB_AT ";" : AB_OUT(x) : "r"(at), "r"(stride) : "memory");
}
__device__ __forceinline__ void load_b_rows(Fragment& x, u32 at, int stride) {
    asm volatile("wmma.load.b.sync.aligned.row.m16n16k16.shared." ELEMENT " " AB_LIST ", " AB_AT ";" : AB_OUT(x) : "r"(at), "r"(stride) : "memory");
}
__device__ __forceinline__ void multiply(float (&c)[8], const Fragment& a, const Fragment& b, bool rows) {
    if (rows)
        asm("wmma.mma.sync.aligned.row.row.m16n16k16." MMA_TYPES " " C_LIST ", " A_LIST ", " B_LIST ", " C_LIST ";" : C_INOUT(c) : AB_IN(a), AB_IN(b));
    else
        asm("wmma.mma.sync.aligned.row.col.m16n16k16." MMA_TYPES " " C_LIST ", " A_LIST ", " B_LIST ", " C_LIST ";" : C_INOUT(c) : AB_IN(a), AB_IN(b));
}
__device__ __forceinline__ void load_c(float (&c)[8], u32 at, int stride) {
    asm volatile("wmma.load.c.sync.aligned.row.m16n16k16.shared.f32 " C_LIST ", [%8], %9;"
                 : "=f"(c[0]), "=f"(c[1]), "=f"(c[2]), "=f"(c[3]), "=f"(c[4]), "=f"(c[5]), "=f"(c[6]), "=f"(c[7]) : "r"(at), "r"(stride) : "memory");
}
__device__ __forceinline__ void store_c(u32 at, const float (&c)[8], int stride) {
    asm volatile("wmma.store.d.sync.aligned.row.m16n16k16.shared.f32 [%0], {%1, %2, %3, %4, %5, %6, %7, %8}, %9;" ::"r"(at), "f"(c[0]), "f"(c[1]),
                 "f"(c[2]), "f"(c[3]), "f"(c[4]), "f"(c[5]), "f"(c[6]), "f"(c[7]), "r"(stride) : "memory");
}

// S = Q Kt of one tile of K.
__device__ __forceinline__ void scores_of(u32 base, u32 k, int warp) {
    for (int tile = warp; tile < BM / 16 * (BN / 16); tile += WARPS) {
        const int m = tile / (BN / 16) * 16, n = tile % (BN / 16) * 16;
        float c[8] = {0, 0, 0, 0, 0, 0, 0, 0};
#pragma unroll
        for (int kk = 0; kk < D; kk += 16) {
            Fragment a, b;
            load_a(a, base + Q_AT + 2 * (m * LD + kk), LD);
            load_b_columns(b, k + 2 * (n * LD + kk), LD);
            multiply(c, a, b, false);
        }
        store_c(base + SCORES_AT + 4 * (m * SCORE_LD + n), c, SCORE_LD);
    }
}

// O += P V of one tile of V.
__device__ __forceinline__ void add_values(u32 base, u32 v, int warp) {
    for (int tile = warp; tile < BM / 16 * (D / 16); tile += WARPS) {
        const int m = tile / (D / 16) * 16, n = tile % (D / 16) * 16;
        const u32 at = base + O_AT + 4 * (m * O_LD + n);
        float c[8];
        load_c(c, at, O_LD);
#pragma unroll
        for (int kk = 0; kk < BN; kk += 16) {
            Fragment a, b;
            load_a(a, base + P_AT + 2 * (m * P_LD + kk), P_LD);
            load_b_rows(b, v + 2 * (kk * LD + n), LD);
            multiply(c, a, b, true);
        }
        store_c(at, c, O_LD);
    }
}

// Scores to exponentials, and O and l to the new maxima: a row a warp.
__device__ __forceinline__ void softmax(const Work& work, int key0, int warp, int lane, float to_log) {
    const float* scores = (const float*)(shared_memory + SCORES_AT);
    u16* p = (u16*)(shared_memory + P_AT);
    float* o = (float*)(shared_memory + O_AT);
    float2* stats = (float2*)(shared_memory + STATS_AT);
    const bool masked = needs_mask(work.size, key0, work.row0);
    for (int row = warp; row < BM; row += WARPS) {
        const float2 before = stats[row];
        float s[(BN + 31) / 32], top = before.x;
#pragma unroll
        for (int i = 0; i < (BN + 31) / 32; ++i) {
            const int n = lane + 32 * i;
            const bool seen = n < BN && (!masked || sees(work.size, work.row0 + row, key0 + n));
            s[i] = seen ? scores[row * SCORE_LD + n] : minus_infinity();
            top = fmaxf(top, s[i]);
        }
#pragma unroll
        for (int bit = 16; bit > 0; bit /= 2) top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, bit));
        // A maximum that rises a little may stay behind: P is then at most 2^RESCALE.
        if (RESCALE != 0 && !(top * to_log > before.x * to_log + RESCALE_LOG)) top = before.x;
        const float shift = top == minus_infinity() ? 0.0f : top * to_log;
        const float decay = exponential(before.x * to_log - shift);
        float sum = 0.0f;
#pragma unroll
        for (int i = 0; i < (BN + 31) / 32; ++i) {
            const int n = lane + 32 * i;
            const float e = exponential(s[i] * to_log - shift);
            sum += e;
            if (n < BN) p[row * P_LD + n] = (u16)pack(e, 0.0f);
        }
#pragma unroll
        for (int bit = 16; bit > 0; bit /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, bit);
        if (RESCALE == 0 || top != before.x)
            for (int d = lane; d < D; d += 32) o[row * O_LD + d] *= decay;
        // Every lane has read the row's statistics before one replaces them.
        __syncwarp();
        if (lane == 0) stats[row] = make_float2(top, before.y * decay + sum);
    }
}

// One unit of work.
__device__ __forceinline__ void attend(const Ring& ring, const Work& work, const u16* q, u16* out, float* partial, float scale) {
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const float to_log = scale * TO_LOG;
    float* o = (float*)(shared_memory + O_AT);
    float2* stats = (float2*)(shared_memory + STATS_AT);
    for (int i = threadIdx.x; i < BM * D; i += THREADS) o[i / D * O_LD + i % D] = 0.0f;
    for (int i = threadIdx.x; i < BM; i += THREADS) stats[i] = make_float2(minus_infinity(), 0.0f);
    if (work.count > 0) load_rows<BM, THREADS, false>(ring.base + Q_AT, q, work.row0, work.size.rows, threadIdx.x);
    prime(ring, work);
#pragma unroll kUnroll
    for (int j = 0; j < work.count; ++j) {
        before_scores(ring, work, j);
        scores_of(ring.base, k_slot(ring, j), warp);
        before_values(ring, work, j);
        if (BARRIERS == 1) __syncthreads();
        softmax(work, kv_tile(work, j) * BN, warp, lane, to_log);
        __syncthreads();
        add_values(ring.base, v_slot(ring, j), warp);
    }
    __syncthreads();
    for (int row = warp; row < BM && work.row0 + row < work.size.rows; row += WARPS) {
        const float2 end = stats[row];
        const float inverse = end.y > 0.0f ? 1.0f / end.y : 0.0f;
        if (SPLIT_KV > 1) {
            float* to = partial_row(partial, work, work.row0 + row);
            for (int d = lane; d < D; d += 32) to[d] = o[row * O_LD + d];
            if (lane == 0) *(float2*)(to + D) = make_float2(end.x * to_log, end.y);
        } else if (EPILOGUE == 0) {
            u32* to = (u32*)(out + (work.row0 + row) * D);
            for (int d = lane; d < D / 2; d += 32) to[d] = pack(o[row * O_LD + 2 * d] * inverse, o[row * O_LD + 2 * d + 1] * inverse);
        } else {
            uint4* to = (uint4*)(out + (work.row0 + row) * D);
            for (int c = lane; c < CHUNKS; c += 32) {
                const float4 x = *(const float4*)(o + row * O_LD + 8 * c), y = *(const float4*)(o + row * O_LD + 8 * c + 4);
                to[c] = make_uint4(pack(x.x * inverse, x.y * inverse), pack(x.z * inverse, x.w * inverse), pack(y.x * inverse, y.y * inverse),
                                   pack(y.z * inverse, y.w * inverse));
            }
        }
    }
}
#endif

// ---- Core 0: scalar loops, LANES threads a row ----
//
// Each lane computes every LANES-th score of its row, and its own D / LANES columns of O.

#if CORE == 0

#define OWN (D / LANES)     // Columns a lane

// The pair of elements at (row, column) of a tile.
__device__ __forceinline__ void read_pair(u32 tile, int row, int column, float& low, float& high) {
    u32 pair;
    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(pair) : "r"(tile + 2 * (row * LD + column)) : "memory");
    unpack(pair, low, high);
}

// One unit of work.
__device__ __forceinline__ void attend(const Ring& ring, const Work& work, const u16* q, u16* out, float* partial, float scale) {
    const int local = threadIdx.x / LANES, lane = threadIdx.x % LANES, row = work.row0 + local;
    const float to_log = scale * TO_LOG;
    float* scores = (float*)(shared_memory + SCORES_AT) + local * SCORE_LD;
    float o[OWN], m = minus_infinity(), l = 0.0f;
#pragma unroll
    for (int d = 0; d < OWN; ++d) o[d] = 0.0f;
    if (work.count > 0) load_rows<BM, THREADS, false>(ring.base + Q_AT, q, work.row0, work.size.rows, threadIdx.x);
    prime(ring, work);
#pragma unroll kUnroll
    for (int j = 0; j < work.count; ++j) {
        const int key0 = kv_tile(work, j) * BN;
        const bool masked = needs_mask(work.size, key0, work.row0);
        before_scores(ring, work, j);
        const u32 k = k_slot(ring, j), v = v_slot(ring, j);
        float top = m;
        for (int n = lane; n < BN; n += LANES) {
            float s = 0.0f;
#pragma unroll 8
            for (int d = 0; d < D; d += 2) {
                float a, b, x, y;
                read_pair(ring.base + Q_AT, local, d, a, b);
                read_pair(k, n, d, x, y);
                s += a * x + b * y;
            }
            if (masked && !sees(work.size, row, key0 + n)) s = minus_infinity();
            scores[n] = s;
            top = fmaxf(top, s);
        }
#pragma unroll
        for (int bit = LANES / 2; bit > 0; bit /= 2) top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, bit));
        if (RESCALE != 0 && !(top * to_log > m * to_log + RESCALE_LOG)) top = m;
        const float shift = top == minus_infinity() ? 0.0f : top * to_log;
        const float decay = exponential(m * to_log - shift);
        m = top;
        l *= decay;
#pragma unroll
        for (int d = 0; d < OWN; ++d) o[d] *= decay;
        for (int n = lane; n < BN; n += LANES) {
            const float e = exponential(scores[n] * to_log - shift);
            scores[n] = e;
            l += e;
        }
        // The lanes of a row read each other's exponentials.
        __syncwarp();
        before_values(ring, work, j);
#pragma unroll 4
        for (int n = 0; n < BN; ++n) {
            const float p = scores[n];
#pragma unroll
            for (int d = 0; d < OWN; d += 2) {
                float x, y;
                read_pair(v, n, lane * OWN + d, x, y);
                o[d] += p * x;
                o[d + 1] += p * y;
            }
        }
        // And are done with them before the next step's scores.
        __syncwarp();
    }
#pragma unroll
    for (int bit = LANES / 2; bit > 0; bit /= 2) l += __shfl_xor_sync(0xffffffffu, l, bit);
    if (row >= work.size.rows) return;
    if (SPLIT_KV > 1) {
        float* to = partial_row(partial, work, row);
#pragma unroll
        for (int d = 0; d < OWN; ++d) to[lane * OWN + d] = o[d];
        if (lane == 0) *(float2*)(to + D) = make_float2(m * to_log, l);
        return;
    }
    const float inverse = l > 0.0f ? 1.0f / l : 0.0f;
    u32 pair[OWN / 2];
#pragma unroll
    for (int d = 0; d < OWN / 2; ++d) pair[d] = pack(o[2 * d] * inverse, o[2 * d + 1] * inverse);
    u32* to = (u32*)(out + row * D + lane * OWN);
#if EPILOGUE == 1
#pragma unroll
    for (int d = 0; d < OWN / 8; ++d) ((uint4*)to)[d] = make_uint4(pair[4 * d], pair[4 * d + 1], pair[4 * d + 2], pair[4 * d + 3]);
#else
#pragma unroll
    for (int d = 0; d < OWN / 2; ++d) to[d] = pair[d];
#endif
}
#endif

// ---- Kernels ----

// Blocks take units of work; with SPLIT_KV > 1 they leave unfinished rows in `partial`.
extern "C" __global__ void
#if MIN_BLOCKS
__launch_bounds__(THREADS, MIN_BLOCKS)
#else
__launch_bounds__(THREADS)
#endif
attention(const u16* __restrict__ q, const u16* __restrict__ k, const u16* __restrict__ v, u16* __restrict__ o,
          float* __restrict__ partial, float scale, int B, int H, int S, int T) {
    const Sizes size = {B * H, S, T};
    const int tiles = size.tiles() * SPLIT_KV * size.heads;   // Units of work
    Ring ring;
    ring.base = shared_base();
    ring.thread = PRODUCERS ? (int)threadIdx.x - CONSUMERS : (int)threadIdx.x;
    ring.passed = 0;
#if PRODUCERS && HANDOVER == 1
    if (threadIdx.x == 0) init_mbarriers(ring);
    __syncthreads();
#endif
#if CORE == 4
    ring.memory = begin_tensor_memory(ring.base);
#endif
    // A block keeps its units apart by a barrier where memory or named barriers are used again. Where
    // each warp alone reads its Q rows and mbarrier phases run on, producers may run ahead into the next.
    constexpr bool APART = CORE >= 3 || !(USES_MBARRIER && !ALIASED);
    for (int tile = blockIdx.x; tile < tiles; tile = PERSISTENT ? tile + gridDim.x : tiles) {
        if (PERSISTENT && tile != (int)blockIdx.x) {
            if (APART) __syncthreads();
            else __syncwarp();
        }
        const Work work = work_of(tile, size);
        ring.k = k + (u64)work.head * T * D;
        ring.v = v + (u64)work.head * T * D;
#if PRODUCERS
        if (threadIdx.x >= CONSUMERS) {
#if MOVES_REGISTERS
            release_registers();
#endif
            if (Q_PATH == 1) sync_roles();
            produce(ring, work);
        } else
#endif
        {
#if MOVES_REGISTERS
            request_registers();
#endif
            attend(ring, work, q + (u64)work.head * S * D, o + (u64)work.head * S * D, partial, scale);
        }
        if (USES_MBARRIER || CORE == 4) ring.passed += work.count;
    }
#if CORE == 4
    end_tensor_memory(ring.memory);
#endif
}

// Joins the parts of each row: grid [ceil(B H S / COMBINE_ROWS)], block [D, COMBINE_ROWS].
extern "C" __global__ void __launch_bounds__(D * COMBINE_ROWS) combine(const float* __restrict__ partial, u16* __restrict__ o, int B, int H, int S) {
    const int row = blockIdx.x * COMBINE_ROWS + threadIdx.y, d = threadIdx.x;
    if (row >= B * H * S) return;
    const float* from = partial + (u64)row * (D + 2);
    const u64 part = (u64)(B * H) * S * (D + 2);        // From one part to the next
    float top = minus_infinity();
#pragma unroll
    for (int i = 0; i < SPLIT_KV; ++i) top = fmaxf(top, from[i * part + D]);
    if (top == minus_infinity()) top = 0.0f;
    float sum = 0.0f, l = 0.0f;
#pragma unroll
    for (int i = 0; i < SPLIT_KV; ++i) {
        // A part that saw no key has maximum minus infinity and weight zero.
        const float weight = exponential(from[i * part + D] - top);
        sum += weight * from[i * part + d];
        l += weight * from[i * part + D + 1];
    }
    const float value = l > 0.0f ? sum / l : 0.0f;
    o[(u64)row * D + d] = (u16)pack(value, 0.0f);
}
