// C = A B on tensor cores, fp16 or bf16 in and out, float32 sums, all row-major:
//
//   C[m][n] = sum over k of A[m][k] * B[k][n]        A is M x K, B is K x N, C is M x N
//
//                  BN                A block owns a BM x BN tile of C and walks along K in steps
//              +-----------+         of BK. STAGES steps of A and B lie in shared memory; each
//           BK |  B tile   |         warp owns WM x WN of C in registers, as 16 x 8 tiles of
//              +-----------+         mma.sync m16n8k16 with operands from ldmatrix.
//       BK     |     |     |
//     +----+   +-----+-----+         With SPLIT_K > 1 several blocks share a tile of C, each on its
//  BM |A   |   | WM x WN   |         part of K; gemm_reduce adds the parts in a fixed order, so the
//     |tile|   |     |     |         result does not depend on timing.
//     +----+   +-----+-----+
//
// With CORE 1 and 2 a warp group, four warps, owns WM x WN and multiplies by wgmma: warpgroup.cuh. With CORE 2 and 3
// the copy engine loads and stores tiles, for clusters of blocks: tensor_copies.cuh. With CORE 3 one thread multiplies by
// tcgen05, WM x BN at once, and a warp group stores the sums in parts of WM x WN: tensor_memory.cuh.
//
// M, N and K are arguments, so that one compilation serves all that are ALIGNED alike. Any sizes: what
// lies outside is read as zero. Fragment layouts are those of the PTX ISA.

// ---- Problem (set by the search space) ----
#ifndef BF16
#define BF16 0              // 1: elements are bf16, 0: fp16
#endif
#ifndef ALIGNED
#define ALIGNED 1           // 1: K and N are multiples of 8: rows are whole 16-byte chunks; 0: any, by 4 or 2 bytes
#endif

// ---- Parameters ----
#ifndef CORE
#define CORE 0              // 0: mma.sync, 1: wgmma of warp groups, 2: the same with tensor maps (both sm_90a only), 3: tcgen05 (sm_100a only)
#endif
#ifndef BM
#define BM 128              // Rows of C a block
#endif
#ifndef BN
#define BN 128              // Columns of C a block
#endif
#ifndef BK
#define BK 32               // Step along K: 16, 32, 64
#endif
#ifndef WM
#define WM 64               // Rows of C a warp, with CORE > 0 a warp group; with CORE 3 also those of a product
#endif
#ifndef WN
#define WN 64               // Columns of C a warp, with CORE > 0 a warp group; with CORE 3 at once
#endif
#ifndef STAGES
#define STAGES 3            // Steps in shared memory
#endif
#ifndef SWIZZLE
#define SWIZZLE 1           // 1: the 16-byte chunks of a shared row are permuted by the row
#endif
#ifndef PAD
#define PAD 0               // Halves added to each shared row: 0, 8
#endif
#ifndef G2S
#define G2S 2               // Global to shared: 0: 2-byte, 1: through registers, 2: cp.async.cg, 3: cp.async.ca
#endif
#ifndef L2_HINT
#define L2_HINT 0           // Bytes that a copy brings into L2: 0, 64, 128, 256
#endif
#ifndef LDSM_B
#define LDSM_B 4            // 8x8 matrices an ldmatrix of B: 2, 4
#endif
#ifndef FRAGMENT_SETS
#define FRAGMENT_SETS 1     // 2: the fragments of the next k16 step are loaded ahead
#endif
#ifndef SERPENTINE
#define SERPENTINE 0        // 1: every other row of mma tiles is walked backwards, so that B fragments are reused
#endif
#ifndef RASTER
#define RASTER 0            // Tiles are walked in bands of 0: tile rows, 1: tile columns
#endif
#ifndef GROUP
#define GROUP 8             // Tile rows or columns in a band
#endif
#ifndef SPLIT_K
#define SPLIT_K 1           // Blocks that share a tile of C along K
#endif
#ifndef PERSISTENT
#define PERSISTENT 0        // 0: a block a tile; else blocks a multiprocessor that take tiles in turn
#endif
#ifndef EPILOGUE
#define EPILOGUE 0          // C stored 0: 4 bytes a thread, 1: 16 through shared memory, 2: 16 after shuffles
#endif
#ifndef UNROLL_K
#define UNROLL_K 1          // Steps along K unrolled
#endif
#ifndef MIN_BLOCKS
#define MIN_BLOCKS 0        // Blocks a multiprocessor asked of the register allocator; 0: no wish
#endif
#ifndef WG_PENDING
#define WG_PENDING 0        // CORE 1, 2: steps whose products are still running when the next step begins: 0, 1
#endif
#ifndef CLUSTER
#define CLUSTER 1           // CORE 2: blocks that share copies: 1, 2, 4; CORE 3: blocks that multiply together: 1, 2
#endif
#ifndef MULTICAST
#define MULTICAST 0         // They share tiles of 0: A, 1: B (with CORE 3 always B)
#endif

// ---- Derived ----
// A constant, as nvcc does not replace macros in a #pragma.
constexpr int kUnroll = UNROLL_K;
#define WARPS_M (BM / WM)                           // Warps, or warp groups, along M
#define WARPS_N (BN / WN)                           // Warps, or warp groups, along N
#define WARP_COUNT (CORE == 3 ? 4 : WARPS_M * WARPS_N * (CORE ? 4 : 1))    // Warps that have sums and store them
#define THREAD_COUNT (32 * (WARP_COUNT + (CORE > 1 ? CORE - 1 : 0)))        // Threads a block
#define PAIR (CORE == 3 ? CLUSTER : 1)              // Blocks that multiply together, each with its part of B
#define SPAN_M (BM * (MULTICAST == 1 ? CLUSTER : 1))      // Rows of C a cluster
#define SPAN_N (BN * (MULTICAST == 0 ? CLUSTER : 1))
#define WGMMA (CORE == 1 || CORE == 2)
#define MT_ROWS (WGMMA ? 64 : 16)                   // Rows from a warp's mma tile to its next along M
#define MT (WM / (CORE ? 64 : 16))                  // mma tiles of a warp along M, 16 rows each
#define WARP_ROWS (16 * MT)                         // Rows of C whose sums a warp has
#define NT (WN / 8)                                 // mma tiles of a warp along N
#define A_LD (BK + PAD)                             // Halves from one shared row of A to the next
#if CORE
#define B_LD (WN % 64 == 0 ? 64 : WN % 32 == 0 ? 32 : 16)   // A panel of B: rows as wide as a swizzle
#else
#define B_LD (BN + PAD)
#endif
#define A_BYTES (2 * BM * A_LD)                     // One step of A
#define B_BYTES (2 * BK * (BN + PAD) / PAIR)
#define STAGE_BYTES (A_BYTES + B_BYTES)
#define C_LD (WN + 8)                               // Halves from one staged row of C to the next

static_assert(BM % WM == 0 && BN % WN == 0, "whole warp tiles fill the block's tile");
static_assert(WM % 16 == 0 && WN % 16 == 0 && BK % 16 == 0, "mma tiles are 16 x 8 x 16, and B is loaded 16 columns at once");
static_assert(!CORE || WM % 64 == 0, "wgmma has 64 rows, tcgen05 64 or 128");
static_assert(!CORE || SWIZZLE, "wgmma and tcgen05 read swizzled tiles");
static_assert(!WG_PENDING || (WGMMA && STAGES >= 3), "copies need a stage that no product reads");
static_assert(CORE >= 2 || CLUSTER == 1, "only tensor maps copy to several blocks");
static_assert(WARP_COUNT <= 32, "a block has at most 1024 threads");
static_assert(!(SWIZZLE && PAD), "swizzle or padding, not both");
static_assert(EPILOGUE == 0 || SPLIT_K == 1, "partial results are stored as float32 directly");
static_assert(EPILOGUE != 2 || WN % 32 == 0, "four lanes trade four 8-column tiles");
static_assert(FRAGMENT_SETS == 1 || BK > 16, "there is no next k16 step to load ahead");

typedef unsigned int u32;
typedef unsigned short u16;
typedef unsigned long long u64;

#if BF16
#define ELEMENT "bf16"
#else
#define ELEMENT "f16"
#endif

// The swizzles of wgmma and tcgen05 are functions of the address: 128 bytes repeat after 1024.
extern __shared__ __align__(CORE ? 1024 : 128) unsigned char shared_memory[];

// Two floats rounded to a pair of elements; `low` goes to the lower address.
__device__ __forceinline__ u32 pack(float low, float high) {
    u32 pair;
    asm("cvt.rn." ELEMENT "x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
    return pair;
}

// Byte offset of 16-byte chunk `chunk` of row `row` in a tile whose rows are `LD` halves apart. The
// swizzle spreads eight rows of one chunk over all 32 banks, whatever power of two divides a row.
template <int LD>
__device__ __forceinline__ u32 chunk_at(int row, int chunk) {
    constexpr int CHUNKS = LD / 8;
    const int turn = CHUNKS % 8 == 0 ? row & 7 : CHUNKS % 4 == 0 ? row >> 1 & 3 : CHUNKS % 2 == 0 ? row >> 2 & 1 : 0;
    return row * (2 * LD) + 16 * (SWIZZLE ? chunk ^ turn : chunk);
}

// ---- Global to shared ----

// Copies `WIDE` halves to shared address `to`, or writes zeros where `inside` is false.
template <int WIDE>
__device__ __forceinline__ void copy(u32 to, const u16* from, bool inside) {
#if L2_HINT == 64
#define CP_HINT ".L2::64B"
#elif L2_HINT == 128
#define CP_HINT ".L2::128B"
#elif L2_HINT == 256
#define CP_HINT ".L2::256B"
#else
#define CP_HINT ""
#endif
    if constexpr (G2S >= 2 && WIDE >= 2) {
        // The source size: what is not read is filled with zeros. Only 16 bytes may pass by L1.
        if constexpr (G2S == 2 && WIDE == 8)
            asm volatile("cp.async.cg.shared.global" CP_HINT " [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(inside ? 16 : 0) : "memory");
        else
            asm volatile("cp.async.ca.shared.global" CP_HINT " [%0], [%1], %3, %2;" ::"r"(to), "l"(from), "r"(inside ? 2 * WIDE : 0), "n"(2 * WIDE) : "memory");
    } else if constexpr (G2S >= 1 && WIDE == 8) {
        u32 x[4] = {0, 0, 0, 0};
        if (inside)
            asm volatile("ld.global.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3]) : "l"(from));
        asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(to), "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]) : "memory");
    } else if constexpr (G2S >= 1 && WIDE >= 2) {
#pragma unroll
        for (int i = 0; i < WIDE; i += 2) {
            u32 x = 0;
            if (inside) asm volatile("ld.global.u32 %0, [%1];" : "=r"(x) : "l"(from + i));
            asm volatile("st.shared.u32 [%0], %1;" ::"r"(to + 2 * i), "r"(x) : "memory");
        }
    } else {
#pragma unroll
        for (int i = 0; i < WIDE; ++i) {
            u16 x = 0;
            if (inside) asm volatile("ld.global.u16 %0, [%1];" : "=h"(x) : "l"(from + i));
            asm volatile("st.shared.u16 [%0], %1;" ::"r"(to + 2 * i), "h"(x) : "memory");
        }
    }
}

// Byte offset of the chunk of (row, column) in a tile. Where LD is less than COLUMNS, the tile consists
// of panels of LD columns, one after another.
template <int ROWS, int COLUMNS, int LD>
__device__ __forceinline__ u32 place_of(int row, int column) {
    if constexpr (LD < COLUMNS) return column / LD * (2 * ROWS * LD) + chunk_at<LD>(row, column % LD / 8);
    else return chunk_at<LD>(row, column / 8);
}

// Copies of `WIDE` halves that a thread makes of a tile.
template <int ROWS, int COLUMNS, int WIDE>
__device__ constexpr int copies_of() {
    return (ROWS * (COLUMNS / WIDE) + THREAD_COUNT - 1) / THREAD_COUNT;
}

// Copies `WIDE` halves of a ROWS x COLUMNS tile whose first element is `from`, in a matrix with
// `rows` rows and `columns` columns from there on and `stride` halves a row: the thread's copy number `i`.
template <int ROWS, int COLUMNS, int LD, int WIDE>
__device__ __forceinline__ void copy_part(u32 tile, const u16* from, int rows, int columns, u32 stride, int i) {
    constexpr int PARTS = COLUMNS / WIDE, COPIES = ROWS * PARTS;
    const int index = threadIdx.x + i * THREAD_COUNT;
    // Where THREAD_COUNT is a multiple of PARTS, a thread's column is the same in every step.
    const int row = THREAD_COUNT % PARTS == 0 ? threadIdx.x / PARTS + i * (THREAD_COUNT / PARTS) : index / PARTS;
    const int column = (THREAD_COUNT % PARTS == 0 ? threadIdx.x % PARTS : index % PARTS) * WIDE;
    if (COPIES % THREAD_COUNT == 0 || index < COPIES) {
        const bool inside = row < rows && column < columns;
        // A copy that reads nothing still needs an address inside the matrix.
        copy<WIDE>(tile + place_of<ROWS, COLUMNS, LD>(row, column) + 2 * (column % 8), from + (inside ? row * stride + column : 0), inside);
    }
}

// Copies the tile at (row0, column0), as wide as the alignment of the matrix's rows allows: they
// follow each other without gaps.
template <int ROWS, int COLUMNS, int LD>
__device__ __forceinline__ void load_tile(u32 tile, const u16* matrix, int row0, int column0, int rows, int stride) {
    const u16* from = matrix + (u64)row0 * stride + column0;
    const int below = rows - row0, right = stride - column0;
#if ALIGNED
#pragma unroll
    for (int i = 0; i < copies_of<ROWS, COLUMNS, 8>(); ++i) copy_part<ROWS, COLUMNS, LD, 8>(tile, from, below, right, stride, i);
#else
    if (stride % 2 == 0) {
#pragma unroll 4
        for (int i = 0; i < copies_of<ROWS, COLUMNS, 2>(); ++i) copy_part<ROWS, COLUMNS, LD, 2>(tile, from, below, right, stride, i);
    } else {
#pragma unroll 1
        for (int i = 0; i < copies_of<ROWS, COLUMNS, 1>(); ++i) copy_part<ROWS, COLUMNS, LD, 1>(tile, from, below, right, stride, i);
    }
#endif
}

// Closes a group of copies.
__device__ __forceinline__ void commit() {
    if (G2S >= 2) asm volatile("cp.async.commit_group;" ::: "memory");
}

// Waits until at most `PENDING` groups of this thread are still under way.
template <int PENDING>
__device__ __forceinline__ void wait_groups() {
    if (G2S >= 2) asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
}

// ---- Work ----

// The sizes of the problem. Tiles are those of a cluster.
struct Sizes {
    int m, n, k;

    __device__ __forceinline__ u32 tiles_m() const { return (m + SPAN_M - 1) / SPAN_M; }
    __device__ __forceinline__ u32 tiles_n() const { return (n + SPAN_N - 1) / SPAN_N; }
};

// A tile of C and a range of steps along K.
struct Work {
    int row0, column0, split;
    int first, count;
};

// `rank`: the block's in its cluster.
__device__ __forceinline__ Work work_of(u32 unit, u32 rank, const Sizes& size) {
    // A band is GROUP tiles across and the whole matrix long; the last may be narrower. Within a
    // band the short side is the fastest, so that neighbours share rows of A and columns of B.
    const u32 all_across = RASTER ? size.tiles_n() : size.tiles_m(), all_along = RASTER ? size.tiles_m() : size.tiles_n();
    const u32 split = SPLIT_K > 1 ? unit / (all_across * all_along) : 0, tile = unit - split * (all_across * all_along);
    const u32 band = tile / (GROUP * all_along), rest = tile - band * (GROUP * all_along);
    const u32 width = all_across - band * GROUP < GROUP ? all_across - band * GROUP : GROUP;
    const u32 along = rest / width, across = band * GROUP + rest - along * width;
    const u32 steps = (size.k + BK - 1) / BK;    // Along the whole of K
    Work work;
    work.row0 = (RASTER ? along : across) * SPAN_M + (MULTICAST == 1 ? rank * BM : 0);
    work.column0 = (RASTER ? across : along) * SPAN_N + (MULTICAST == 0 ? rank * BN : 0);
    work.split = split;
    work.first = (int)((u64)steps * split / SPLIT_K);
    work.count = (int)((u64)steps * (split + 1) / SPLIT_K) - work.first;
    return work;
}

// Loads step `i` of a unit into its stage.
__device__ __forceinline__ void issue(u32 base, const u16* a, const u16* b, const Sizes& size, const Work& work, int i) {
    if (i >= work.count) return;
    const u32 stage = base + i % STAGES * STAGE_BYTES;
    const int k = (work.first + i) * BK;
    load_tile<BM, BK, A_LD>(stage, a, work.row0, k, size.m, size.k);
    load_tile<BK, BN, B_LD>(stage + A_BYTES, b, k, work.column0, size.k, size.n);
}

// ---- The sums of a part of a tile: `accumulate` ----

#if CORE
#if CORE > 1
#include "tensor_copies.cuh"
#endif
#if CORE == 3
#include "tensor_memory.cuh"
#else
#include "warpgroup.cuh"
#endif
#else
struct Fragments {
    u32 a[MT][4];
    u32 b[NT][2];
};

__device__ __forceinline__ void mma(float (&c)[4], const u32 (&a)[4], const u32 (&b)[2]) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32." ELEMENT "." ELEMENT ".f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// The fragments of k16 step `kk` of the warp tile at (m, n).
__device__ __forceinline__ void load_fragments(Fragments& f, u32 stage, int m, int n, int kk, int lane) {
#pragma unroll
    for (int i = 0; i < MT; ++i)
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(f.a[i][0]), "=r"(f.a[i][1]), "=r"(f.a[i][2]), "=r"(f.a[i][3])
                     : "r"(stage + chunk_at<A_LD>(m + 16 * i + lane % 16, 2 * kk + lane / 16)) : "memory");
    // B is k-major, so its fragments are transposed on the way.
    const u32 b = stage + A_BYTES;
#pragma unroll
    for (int j = 0; j < NT; j += 2) {
#if LDSM_B == 4
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(f.b[j][0]), "=r"(f.b[j][1]), "=r"(f.b[j + 1][0]), "=r"(f.b[j + 1][1])
                     : "r"(b + chunk_at<B_LD>(16 * kk + lane % 16, n / 8 + j + lane / 16)) : "memory");
#else
#pragma unroll
        for (int h = 0; h < 2; ++h)
            asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
                         : "=r"(f.b[j + h][0]), "=r"(f.b[j + h][1]) : "r"(b + chunk_at<B_LD>(16 * kk + lane % 16, n / 8 + j + h)) : "memory");
#endif
    }
}

__device__ __forceinline__ void multiply(float (&c)[MT][NT][4], const Fragments& f) {
#pragma unroll
    for (int i = 0; i < MT; ++i)
#pragma unroll
        for (int j = 0; j < NT; ++j) {
            const int at = SERPENTINE && i % 2 ? NT - 1 - j : j;
            mma(c[i][at], f.a[i], f.b[at]);
        }
}

// C += A B of one step.
__device__ __forceinline__ void step(float (&c)[MT][NT][4], u32 stage, int m, int n, int lane) {
    Fragments f[FRAGMENT_SETS];
    if (FRAGMENT_SETS == 2) load_fragments(f[0], stage, m, n, 0, lane);
#pragma unroll
    for (int kk = 0; kk < BK / 16; ++kk) {
        if (FRAGMENT_SETS == 1)
            load_fragments(f[0], stage, m, n, kk, lane);
        else if (kk + 1 < BK / 16)
            load_fragments(f[(kk + 1) % FRAGMENT_SETS], stage, m, n, kk + 1, lane);
        multiply(c, f[kk % FRAGMENT_SETS]);
    }
}

// Adds the product of all steps of a unit to `c`, for the warp tile at (m, n).
__device__ __forceinline__ void accumulate(float (&c)[MT][NT][4], const Sizes& size, const Work& work, u32 base, const u16* a, const u16* b, int m, int n, int lane) {
    // One group a step, empty past the end, so that the number of groups after a step's own is the
    // same in every step.
#pragma unroll
    for (int i = 0; i < STAGES - 1; ++i) {
        issue(base, a, b, size, work, i);
        commit();
    }
#pragma unroll kUnroll
    for (int i = 0; i < work.count; ++i) {
        if (STAGES == 1) {
            if (i > 0) __syncthreads();
            issue(base, a, b, size, work, i);
            commit();
            wait_groups<0>();
            __syncthreads();
        } else {
            wait_groups<STAGES == 1 ? 0 : STAGES - 2>();
            // Step i is readable by all, and all are done with step i - 1, whose stage comes next.
            __syncthreads();
            issue(base, a, b, size, work, i + STAGES - 1);
            commit();
        }
        step(c, base + i % STAGES * STAGE_BYTES, m, n, lane);
    }
}
#endif

// ---- Epilogue ----

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

// Stores `COUNT` pairs of neighbouring columns from (row, column) on, `WIDE` halves at once: 8, 2 or 1.
template <int COUNT, int WIDE>
__device__ __forceinline__ void store_pairs(u16* c, const Sizes& size, int row, int column, const u32 (&x)[COUNT]) {
    if (row >= size.m || column >= size.n) return;
    u16* to = c + (u64)row * size.n + column;
    if constexpr (COUNT == 4 && WIDE == 8) {
        *(uint4*)to = make_uint4(x[0], x[1], x[2], x[3]);
    } else if constexpr (WIDE >= 2) {
#pragma unroll
        for (int i = 0; i < COUNT; ++i)
            if (column + 2 * i < size.n) ((u32*)to)[i] = x[i];
    } else {
#pragma unroll
        for (int i = 0; i < COUNT; ++i) {
            if (column + 2 * i < size.n) to[2 * i] = (u16)x[i];
            if (column + 2 * i + 1 < size.n) to[2 * i + 1] = (u16)(x[i] >> 16);
        }
    }
}

// The row of a warp's part that has the local number `local`: 16 of every MT_ROWS belong to the warp.
__device__ __forceinline__ int row_of(int local) {
    if constexpr (MT_ROWS == 16) return local;
    else return local / 16 * MT_ROWS + local % 16;
}

// Stores the warp's part of C, whose first element is (row, column), `WIDE` halves at once. `staging`:
// shared memory for WARP_ROWS rows of C_LD halves, free for this warp.
template <int WIDE>
__device__ __forceinline__ void store_c(const float (&c)[MT][NT][4], u16* out, const Sizes& size, u32 staging, int row, int column, int lane) {
#pragma unroll
    for (int i = 0; i < MT; ++i)
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            const int local = 16 * i + lane / 4 + 8 * h;
            u32 pair[NT];
#pragma unroll
            for (int j = 0; j < NT; ++j) pair[j] = pack(c[i][j][2 * h], c[i][j][2 * h + 1]);
#if EPILOGUE == 0
#pragma unroll
            for (int j = 0; j < NT; ++j) {
                const u32 x[1] = {pair[j]};
                store_pairs<1, WIDE>(out, size, row + row_of(local), column + 8 * j + 2 * (lane % 4), x);
            }
#elif EPILOGUE == 1
#pragma unroll
            for (int j = 0; j < NT; ++j)
                asm volatile("st.shared.u32 [%0], %1;" ::"r"(staging + 2 * (local * C_LD + 8 * j + 2 * (lane % 4))), "r"(pair[j]) : "memory");
#else
#pragma unroll
            for (int j = 0; j < NT; j += 4) {
                u32 x[4] = {pair[j], pair[j + 1], pair[j + 2], pair[j + 3]};
                trade_pairs(x, lane);
                store_pairs<4, WIDE>(out, size, row + row_of(local), column + 8 * (j + lane % 4), x);
            }
#endif
        }
#if EPILOGUE == 1
    __syncwarp();
#pragma unroll
    for (int i = 0; i < WARP_ROWS * (WN / 8) / 32; ++i) {
        const int index = lane + 32 * i, local = index / (WN / 8), chunk = index % (WN / 8);
        u32 x[4];
        asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                     : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3]) : "r"(staging + 2 * (local * C_LD + 8 * chunk)) : "memory");
        store_pairs<4, WIDE>(out, size, row + row_of(local), column + 8 * chunk, x);
    }
#endif
}

// Stores the warp's part of a split's float32 partial sums; PAIRS: N is even.
template <bool PAIRS>
__device__ __forceinline__ void store_partial(const float (&c)[MT][NT][4], float* partial, const Sizes& size, int row, int column, int lane) {
#pragma unroll
    for (int i = 0; i < MT; ++i)
#pragma unroll
        for (int h = 0; h < 2; ++h)
#pragma unroll
            for (int j = 0; j < NT; ++j) {
                const int r = row + MT_ROWS * i + lane / 4 + 8 * h, n = column + 8 * j + 2 * (lane % 4);
                float* to = partial + (u64)r * size.n + n;
                if (r >= size.m) continue;
                if (PAIRS) {
                    if (n < size.n) *(float2*)to = make_float2(c[i][j][2 * h], c[i][j][2 * h + 1]);
                } else {
                    if (n < size.n) to[0] = c[i][j][2 * h];
                    if (n + 1 < size.n) to[1] = c[i][j][2 * h + 1];
                }
            }
}

// ---- Kernels ----

// A warp and its part of the block's tile.
struct Part {
    int lane, warp;
    int m, n;       // The first row and column of the part
    int first;      // The first row of the warp's sums: a part of a warp group has four warps
};

__device__ __forceinline__ Part part_of_warp() {
    Part part;
    part.lane = threadIdx.x % 32;
    part.warp = threadIdx.x / 32;
    // All lanes have the same part: the shuffle tells the compiler that descriptors are uniform.
    const int number = CORE ? __shfl_sync(0xffffffffu, part.warp / 4, 0) : part.warp;
    part.m = number / WARPS_N * WM;
    part.n = number % WARPS_N * WN;
    part.first = part.m + (WGMMA ? part.warp % 4 * 16 : CORE ? part.warp % 4 * WARP_ROWS : 0);
    return part;
}

__device__ __forceinline__ void clear(float (&c)[MT][NT][4]) {
#pragma unroll
    for (int i = 0; i < MT; ++i)
#pragma unroll
        for (int j = 0; j < NT; ++j)
#pragma unroll
            for (int e = 0; e < 4; ++e) c[i][j][e] = 0.0f;
}

// Stores the sums of a warp. `staging`: shared memory for WARP_ROWS rows of C_LD halves with EPILOGUE 1.
__device__ __forceinline__ void store_sums(const float (&c)[MT][NT][4], const Sizes& size, const Work& work, const Part& part, u16* out, float* partial, u32 staging) {
    const int row = work.row0 + part.first, column = work.column0 + part.n;
    if (SPLIT_K > 1) {
        partial += (u64)work.split * size.m * size.n;
        if (ALIGNED || size.n % 2 == 0) store_partial<true>(c, partial, size, row, column, part.lane);
        else store_partial<false>(c, partial, size, row, column, part.lane);
        return;
    }
    if (ALIGNED) store_c<8>(c, out, size, staging, row, column, part.lane);
    else if (size.n % 2 == 0) store_c<2>(c, out, size, staging, row, column, part.lane);
    else store_c<1>(c, out, size, staging, row, column, part.lane);
}

#if MIN_BLOCKS
#define BOUNDS __launch_bounds__(THREAD_COUNT, MIN_BLOCKS)
#else
#define BOUNDS __launch_bounds__(THREAD_COUNT)
#endif

// Blocks, or clusters of them, take units of work; with SPLIT_K > 1 they leave their sums in `partial`.
#if CORE < 2
extern "C" __global__ void BOUNDS
gemm(const u16* __restrict__ a, const u16* __restrict__ b, u16* __restrict__ c, float* __restrict__ partial, int M, int N, int K) {
    const Sizes size = {M, N, K};
    const int units = size.tiles_m() * size.tiles_n() * SPLIT_K;    // Units of work
    const u32 base = (u32)__cvta_generic_to_shared(shared_memory);
    const Part part = part_of_warp();
    for (int unit = blockIdx.x; unit < units; unit = PERSISTENT ? unit + gridDim.x : units) {
        // The next unit's copies overwrite what warps may still read.
        if (PERSISTENT && unit != (int)blockIdx.x) __syncthreads();
        const Work work = work_of(unit, 0, size);
        float sums[MT][NT][4];
        clear(sums);
        accumulate(sums, size, work, base, a, b, part.m, part.n, part.lane);
        // The stages become the staging of C when all warps have read them.
        if (EPILOGUE == 1) __syncthreads();
        store_sums(sums, size, work, part, c, partial, base + part.warp * (2 * WARP_ROWS * C_LD));
    }
}
#else
// Stores the sums of a warp by tensor copies or by the warp itself.
__device__ __forceinline__ void store_mapped(const float (&c)[MT][NT][4], const Sizes& size, const Work& work, const Part& part,
                                             const CUtensorMap& c_map, u16* out, float* partial, u32 base) {
    if (EPILOGUE == 1)
        store_panels(c, c_map, base + STAGING_AT + part.warp * (PANELS_IN_FLIGHT * PANEL_BYTES), work.row0 + part.first,
                     work.column0 + part.n, part.lane);
    else
        store_sums(c, size, work, part, out, partial, 0);
}

extern "C" __global__ void BOUNDS
gemm_mapped(const __grid_constant__ CUtensorMap a_map, const __grid_constant__ CUtensorMap b_map, const __grid_constant__ CUtensorMap c_map,
            u16* __restrict__ c, float* __restrict__ partial, int M, int N, int K) {
    const Sizes size = {M, N, K};
    const int units = size.tiles_m() * size.tiles_n() * SPLIT_K;    // Units of work
    const u32 base = (u32)__cvta_generic_to_shared(shared_memory), rank = rank_in_cluster();
    const int first = blockIdx.x / CLUSTER, step = PERSISTENT ? gridDim.x / CLUSTER : units;
    if (threadIdx.x == 0) init_barriers(base);
    Place place = {base, 0, 0};
    Part part = part_of_warp();
#if CORE == 2
    cluster_barrier();
#else
    SumsPlace sums_place = {base, 0, 0};
    const u32 memory = begin_tensor_memory(base, part.warp == WARP_COUNT + 1);
#endif
    if (part.warp == WARP_COUNT) {
        if (elected())
            for (int unit = first; unit < units; unit += step) copy_steps(place, work_of(unit, rank, size), a_map, b_map, rank);
#if CORE == 3
    } else if (part.warp == WARP_COUNT + 1) {
        if (rank == 0 && elected())
            for (int unit = first; unit < units; unit += step) multiply_steps(place, sums_place, work_of(unit, rank, size), memory);
#endif
    } else {
        for (int unit = first; unit < units; unit += step) {
            const Work work = work_of(unit, rank, size);
#if CORE == 2
            float sums[MT][NT][4];
            clear(sums);
            accumulate(sums, place, work, part.m, part.n, part.lane);
            store_mapped(sums, size, work, part, c_map, c, partial, base);
#else
            wait_for_sums(sums_place);
#pragma unroll 1
            for (int at = 0; at < SET_COLUMNS; at += WN) {
                part.n = at % BN;
                part.first = at / BN * WM + part.warp * WARP_ROWS;
                float sums[MT][NT][4];
                // Without steps nothing was multiplied.
                if (SPLIT_K > 1 && work.count == 0) clear(sums);
                else load_tiles(sums, memory + sums_place.slot * SET_COLUMNS + at + (32 * part.warp << 16));
                if (at + WN == SET_COLUMNS) release_sums(sums_place, part.lane);
                store_mapped(sums, size, work, part, c_map, c, partial, base);
            }
            sums_place.advance();
#endif
        }
        if (EPILOGUE == 1 && part.lane == 0) asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
    }
    // A block of a cluster stays while others arrive at its mbarriers.
    __syncwarp();
#if CORE == 3
    end_tensor_memory(memory, part.warp == WARP_COUNT + 1);
#else
    if (CLUSTER > 1) cluster_barrier();
#endif
}
#endif

// Adds the parts of each element: grid [ceil(M N / 256)], block [256].
extern "C" __global__ void __launch_bounds__(256) gemm_reduce(const float* __restrict__ partial, u16* __restrict__ c, int M, int N) {
    const u64 at = (u64)blockIdx.x * 256 + threadIdx.x;
    if (at >= (u64)M * N) return;
    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < SPLIT_K; ++i) sum += partial[(u64)i * M * N + at];
    c[at] = (u16)pack(sum, 0.0f);
}
