// Attention forward on 8-bit inputs with a scale for each block of rows, fp32 accumulation:
//
//   O[b,h,i,:] = sum_j softmax_j(scale * sq[i] sk[j] Q[b,h,i,:] . K[b,h,j,:]) sv[j] V[b,h,j,:]
//
//   Q [B, H, S, D]   K, V [B, H, T, D]   e4m3, row-major     O [B, H, S, D] fp16
//   sq [B, H, ceil(S / SCALE_ROWS)]   sk, sv [B, H, ceil(T / SCALE_ROWS)]   fp32, positive: the scale
//   of row r is number r / SCALE_ROWS. CAUSAL hides keys j > i + T - S.
//
//            K/V rows, BN a step -->                 one thread block: BM rows of Q, all of K and V.
//          +------+------+------+---                 BN divides SCALE_ROWS, so that a step has one
//     BM   |  S = Q Kt   | next |   ...              scale of K and one of V: that of K joins the
//     rows |  P = exp(S-m)      |                    scale of the scores, that of V is O's unit.
//          +------+------+------+---
//
// P is kept in fp16, and V comes to fp16 exactly: what is lost to 8 bits is lost in the inputs, not
// here. Scores stay finite: e4m3 has no infinities, 448 * 448 * D is far below the fp32 maximum, and
// a row that has seen no key has shift 0 instead of the difference of two infinities.
//
// Online softmax: Milakov and Gimelshein 2018. Tiling: Dao et al. 2022, 2023. The fragment layouts
// of mma and ldmatrix are those of the PTX ISA. Rows of K/V beyond T are read as zero. `scale` must
// be positive.

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
#ifndef SCALE_ROWS
#define SCALE_ROWS 128      // Rows that share a scale
#endif

// ---- Parameters ----
#ifndef QK_CORE
#define QK_CORE 0           // Q K by 0: fp16 mma of converted values, 1: e4m3 mma (sm_89 and later)
#endif
#ifndef BM
#define BM 64               // Rows of Q a block
#endif
#ifndef BN
#define BN 64               // Rows of K and V a step
#endif
#ifndef WARPS
#define WARPS 4             // Warps a block
#endif
#ifndef STAGES
#define STAGES 2            // Tiles of K and V in shared memory; 1 costs a second barrier a step
#endif
#ifndef PREFETCH
#define PREFETCH 1          // 1: the next tile is on its way into registers during a step
#endif
#ifndef SWIZZLE
#define SWIZZLE 1           // 1: 16-byte chunks of a shared row are permuted by the row
#endif
#ifndef PAD
#define PAD 0               // Bytes added to each shared row: 0, 16
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
#ifndef CAUSAL_SKIP
#define CAUSAL_SKIP 2       // Causal: 0: all tiles, 1: no hidden tiles, 2: and masks only where a tile needs one
#endif
#ifndef GRID_ORDER
#define GRID_ORDER 0        // Fastest index 0: Q tile, 1: head, 2: Q tile from the last, 3: head, Q tiles from the last
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
#define THREADS (32 * WARPS)
#define WM (BM / WARPS)                             // Q rows a warp
#define MT (WM / 16)                                // mma row tiles a warp
#define DEPTH (QK_CORE ? 32 : 16)                   // Columns an mma of Q K
#define K_ROW (QK_CORE ? D : 2 * D)                 // Bytes a row of K in shared memory, without padding
#define V_ROW (2 * D)
#define K_LD (K_ROW + PAD)
#define V_LD (V_ROW + PAD)
#define K_BYTES (BN * K_LD)
#define V_BYTES (BN * V_LD)
#define CHUNKS (D / 16)                             // 16-byte chunks of a row in global memory
#define COPIES ((BN * CHUNKS + THREADS - 1) / THREADS) // Chunks of a tile a thread
#define SCALES(rows) (((rows) + SCALE_ROWS - 1) / SCALE_ROWS)

static_assert(D % 64 == 0, "rows are whole 64-byte pieces, which the swizzle permutes");
static_assert(BM % (16 * WARPS) == 0, "a warp owns whole 16-row tiles");
static_assert(BN % 16 == 0 && SCALE_ROWS % BN == 0, "a step has one scale of K and one of V");
static_assert(!(SWIZZLE && PAD), "swizzle or padding, not both");

typedef unsigned int u32;
typedef unsigned short u16;
typedef unsigned char u8;
typedef unsigned long long u64;

// ---- Elements ----

// Four e4m3 values as two pairs of halves, exactly: exponent and fraction move to fp16's, whose bias
// is 8 higher, so a product with 2^8 makes up for it and normalises what was subnormal. The two NaNs
// become 480 and -480; honest data has none.
__device__ __forceinline__ uint2 to_halves(u32 x) {
    uint2 pair;
    // Bytes 0 and 1 to the upper halves of two words, then bytes 2 and 3.
    const u32 low = __byte_perm(x, 0, 0x1404), high = __byte_perm(x, 0, 0x3424);
    const u32 a = (low & 0x80008000u) | ((low & 0x7f007f00u) >> 1);
    const u32 b = (high & 0x80008000u) | ((high & 0x7f007f00u) >> 1);
    asm("mul.rn.f16x2 %0, %1, %2;" : "=r"(pair.x) : "r"(a), "r"(0x5c005c00u));
    asm("mul.rn.f16x2 %0, %1, %2;" : "=r"(pair.y) : "r"(b), "r"(0x5c005c00u));
    return pair;
}

// Two floats rounded to a pair of halves; `low` goes to the lower address.
__device__ __forceinline__ u32 pack(float low, float high) {
    u32 pair;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
    return pair;
}

__device__ __forceinline__ float minus_infinity() { return __uint_as_float(0xff800000u); }

// The exponential of the softmax in the base of EXP2, and the factor that brings a score to it.
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

// ---- Shared memory: STAGES tiles of K, then as many of V ----

extern __shared__ __align__(128) unsigned char shared_memory[];

// Byte offset of 16-byte chunk `chunk` of row `row` in a tile of rows of ROW bytes. A row of 64
// bytes has four chunks, and two rows share the banks of one.
template <int ROW>
__device__ __forceinline__ u32 chunk_at(int row, int chunk) {
    const int moved = !SWIZZLE ? chunk : ROW == 64 ? chunk ^ (row / 2 & 3) : chunk ^ (row & 7);
    return row * (ROW + PAD) + 16 * moved;
}

__device__ __forceinline__ void store_chunk(u32 at, u32 x, u32 y, u32 z, u32 w) {
    asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(at), "r"(x), "r"(y), "r"(z), "r"(w) : "memory");
}

// 16 values of row `row` as halves.
template <int ROW>
__device__ __forceinline__ void store_halves(u32 tile, int row, int chunk, uint4 x) {
    const uint2 a = to_halves(x.x), b = to_halves(x.y), c = to_halves(x.z), d = to_halves(x.w);
    store_chunk(tile + chunk_at<ROW>(row, 2 * chunk), a.x, a.y, b.x, b.y);
    store_chunk(tile + chunk_at<ROW>(row, 2 * chunk + 1), c.x, c.y, d.x, d.y);
}

// A thread's part of a tile of K and V, as it comes from global memory.
struct Staged {
    uint4 k[COPIES], v[COPIES];
};

__device__ __forceinline__ void fetch(Staged& staged, const u8* k, const u8* v, int key0, int T) {
#pragma unroll
    for (int i = 0; i < COPIES; ++i) {
        const int index = threadIdx.x + i * THREADS, row = key0 + index / CHUNKS;
        const bool inside = index < BN * CHUNKS && (!RAGGED || row < T);
        const int at = row * D + index % CHUNKS * 16;
        staged.k[i] = inside ? *(const uint4*)(k + at) : make_uint4(0, 0, 0, 0);
        staged.v[i] = inside ? *(const uint4*)(v + at) : make_uint4(0, 0, 0, 0);
    }
}

__device__ __forceinline__ void put(const Staged& staged, u32 k, u32 v) {
#pragma unroll
    for (int i = 0; i < COPIES; ++i) {
        const int index = threadIdx.x + i * THREADS, row = index / CHUNKS, chunk = index % CHUNKS;
        if (BN * CHUNKS % THREADS != 0 && index >= BN * CHUNKS) continue;
        const uint4 x = staged.k[i];
        if (QK_CORE) store_chunk(k + chunk_at<K_ROW>(row, chunk), x.x, x.y, x.z, x.w);
        else store_halves<K_ROW>(k, row, chunk, x);
        store_halves<V_ROW>(v, row, chunk, staged.v[i]);
    }
}

// ---- Tensor cores ----
//
// Accumulator tile of m16n8: thread (g = lane / 4, t = lane % 4) holds rows g and g + 8, columns
// 2t and 2t + 1. Two neighbouring tiles of S, rounded, are the A fragment of P for one k16 step.

typedef float Scores[MT][BN / 8][4];
typedef u32 QFragments[MT][D / DEPTH][4];

struct Rows {
    float o[MT][D / 8][4];  // Accumulated sum of P V, in units of the scale of V
    float m[MT][2];         // Maximum of rows g and g + 8, as an exponent
    float l[MT][2];         // This thread's part of the row sum
};

__device__ __forceinline__ void mma_half(float (&c)[4], const u32 (&a)[4], u32 b0, u32 b1) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
__device__ __forceinline__ void mma_scores(float (&c)[4], const u32 (&a)[4], u32 b0, u32 b1) {
#if QK_CORE
    asm("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#else
    mma_half(c, a, b0, b1);
#endif
}

#define LDMATRIX(N, TRANS) "ldmatrix.sync.aligned.m8n8.x" #N TRANS ".shared.b16 "
__device__ __forceinline__ void ldmatrix4(u32 (&x)[4], u32 at) {
    asm volatile(LDMATRIX(4, "") "{%0, %1, %2, %3}, [%4];" : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3]) : "r"(at) : "memory");
}
__device__ __forceinline__ void ldmatrix2(u32& x, u32& y, u32 at) {
    asm volatile(LDMATRIX(2, "") "{%0, %1}, [%2];" : "=r"(x), "=r"(y) : "r"(at) : "memory");
}
__device__ __forceinline__ void ldmatrix4_trans(u32 (&x)[4], u32 at) {
    asm volatile(LDMATRIX(4, ".trans") "{%0, %1, %2, %3}, [%4];" : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3]) : "r"(at) : "memory");
}
__device__ __forceinline__ void ldmatrix2_trans(u32& x, u32& y, u32 at) {
    asm volatile(LDMATRIX(2, ".trans") "{%0, %1}, [%2];" : "=r"(x), "=r"(y) : "r"(at) : "memory");
}

// All A fragments of this warp's Q rows, straight from global memory: register i of a fragment holds
// row g + 8 (i % 2) and the thread's columns of half i / 2 of the step.
__device__ __forceinline__ void load_q(QFragments& fragments, const u8* q, int row, int S, int lane) {
#pragma unroll
    for (int mt = 0; mt < MT; ++mt)
#pragma unroll
        for (int kk = 0; kk < D / DEPTH; ++kk)
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                const int r = row + 16 * mt + lane / 4 + 8 * (i % 2);
                const int c = DEPTH * kk + DEPTH / 8 * (lane % 4) + DEPTH / 2 * (i / 2);
                u32 x = 0;
                if (r < S) x = QK_CORE ? *(const u32*)(q + r * D + c) : *(const u16*)(q + r * D + c);
                fragments[mt][kk][i] = QK_CORE ? x : to_halves(x).x;
            }
}

// S = Q Kt of one tile of K.
__device__ __forceinline__ void scores_of(Scores& s, const QFragments& fragments, u32 k, int lane) {
#pragma unroll
    for (int mt = 0; mt < MT; ++mt)
#pragma unroll
        for (int n = 0; n < BN / 8; ++n)
#pragma unroll
            for (int i = 0; i < 4; ++i) s[mt][n][i] = 0.0f;
#pragma unroll
    for (int kk = 0; kk < D / DEPTH; ++kk)
#pragma unroll
        for (int n = 0; n < BN / 16; ++n) {
            u32 b[4];
            // Matrices: keys 0-7 then 8-15, each with both 16-byte halves of the step.
#if LDSM_K == 4
            ldmatrix4(b, k + chunk_at<K_ROW>(16 * n + lane % 8 + lane / 16 * 8, 2 * kk + lane / 8 % 2));
#else
            ldmatrix2(b[0], b[1], k + chunk_at<K_ROW>(16 * n + lane % 8, 2 * kk + lane / 8 % 2));
            ldmatrix2(b[2], b[3], k + chunk_at<K_ROW>(16 * n + 8 + lane % 8, 2 * kk + lane / 8 % 2));
#endif
#pragma unroll
            for (int mt = 0; mt < MT; ++mt) {
                mma_scores(s[mt][2 * n], fragments[mt][kk], b[0], b[1]);
                mma_scores(s[mt][2 * n + 1], fragments[mt][kk], b[2], b[3]);
            }
        }
}

// Whether row `row` sees key `key`.
__device__ __forceinline__ bool sees(int row, int key, int S, int T) {
    return (!RAGGED || key < T) && (!CAUSAL || key <= row + T - S);
}

// Whether a tile that starts at key `key0` hides a key from a row from `row` on.
__device__ __forceinline__ bool needs_mask(int key0, int row, int S, int T) {
    const bool ragged = RAGGED && key0 + BN > T;
    const bool diagonal = CAUSAL && key0 + BN - 1 > row + T - S;
    return CAUSAL && CAUSAL_SKIP < 2 ? true : ragged || diagonal;
}

__device__ __forceinline__ void mask_scores(Scores& s, int row, int key0, int S, int T, int lane) {
#pragma unroll
    for (int mt = 0; mt < MT; ++mt)
#pragma unroll
        for (int n = 0; n < BN / 8; ++n)
#pragma unroll
            for (int i = 0; i < 4; ++i)
                if (!sees(row + 16 * mt + lane / 4 + 8 * (i / 2), key0 + 8 * n + 2 * (lane % 4) + i % 2, S, T))
                    s[mt][n][i] = minus_infinity();
}

// Turns scores into exponentials and brings O and l to the new maxima. `to_log` takes a score of
// each row to its exponent, all scales included; `unit`: the scale of V before over that of now.
__device__ __forceinline__ void softmax(Scores& s, Rows& rows, const float (&to_log)[MT][2], float unit) {
#pragma unroll
    for (int mt = 0; mt < MT; ++mt) {
        float shift[2], decay[2];
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            float top = minus_infinity();
#pragma unroll
            for (int n = 0; n < BN / 8; ++n) top = fmaxf(top, fmaxf(s[mt][n][2 * h], s[mt][n][2 * h + 1]));
            top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, 1));
            top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, 2));
            const float old = rows.m[mt][h], now = fmaxf(old, top * to_log[mt][h]);
            // A row that has seen no key yet has no maximum; any finite shift serves.
            shift[h] = now == minus_infinity() ? 0.0f : now;
            decay[h] = exponential(old - shift[h]);
            rows.m[mt][h] = now;
            rows.l[mt][h] *= decay[h];
        }
#pragma unroll
        for (int n = 0; n < D / 8; ++n)
#pragma unroll
            for (int i = 0; i < 4; ++i) rows.o[mt][n][i] *= decay[i / 2] * unit;
#pragma unroll
        for (int n = 0; n < BN / 8; ++n)
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                s[mt][n][i] = exponential(s[mt][n][i] * to_log[mt][i / 2] - shift[i / 2]);
                rows.l[mt][i / 2] += s[mt][n][i];
            }
    }
}

// O += P V of one tile of V.
__device__ __forceinline__ void add_values(Rows& rows, const Scores& p, u32 v, int lane) {
#pragma unroll
    for (int kk = 0; kk < BN / 16; ++kk) {
        u32 a[MT][4];
#pragma unroll
        for (int mt = 0; mt < MT; ++mt)
#pragma unroll
            for (int i = 0; i < 4; ++i)
                a[mt][i] = pack(p[mt][2 * kk + i / 2][2 * (i % 2)], p[mt][2 * kk + i / 2][2 * (i % 2) + 1]);
#pragma unroll
        for (int n = 0; n < D / 16; ++n) {
            u32 b[4];
            // Matrices, transposed on the way: columns 0-7 then 8-15, each with keys 0-7 then 8-15.
#if LDSM_V == 4
            ldmatrix4_trans(b, v + chunk_at<V_ROW>(16 * kk + lane % 16, 2 * n + lane / 16));
#else
            ldmatrix2_trans(b[0], b[1], v + chunk_at<V_ROW>(16 * kk + lane % 16, 2 * n));
            ldmatrix2_trans(b[2], b[3], v + chunk_at<V_ROW>(16 * kk + lane % 16, 2 * n + 1));
#endif
#pragma unroll
            for (int mt = 0; mt < MT; ++mt) {
                mma_half(rows.o[mt][2 * n], a[mt], b[0], b[1]);
                mma_half(rows.o[mt][2 * n + 1], a[mt], b[2], b[3]);
            }
        }
    }
}

// Stores a warp's rows, divided by their sums and in the unit of the last scale of V.
__device__ __forceinline__ void store_rows(Rows& rows, u16* o, int row, int S, int lane, float unit) {
#pragma unroll
    for (int mt = 0; mt < MT; ++mt)
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            float l = rows.l[mt][h];
            l += __shfl_xor_sync(0xffffffffu, l, 1);
            l += __shfl_xor_sync(0xffffffffu, l, 2);
            // A row that sees no key is zero.
            const float factor = l > 0.0f ? unit / l : 0.0f;
            const int r = row + 16 * mt + lane / 4 + 8 * h;
            if (r >= S) continue;
            u32* to = (u32*)(o + r * D) + lane % 4;
#pragma unroll
            for (int n = 0; n < D / 8; ++n) to[4 * n] = pack(rows.o[mt][n][2 * h] * factor, rows.o[mt][n][2 * h + 1] * factor);
        }
}

// ---- Kernel: grid [ceil(S / BM) * B * H], block [THREADS] ----

extern "C" __global__ void
#if MIN_BLOCKS
__launch_bounds__(THREADS, MIN_BLOCKS)
#else
__launch_bounds__(THREADS)
#endif
attention(const u8* __restrict__ q, const u8* __restrict__ k, const u8* __restrict__ v, const float* __restrict__ q_scale,
          const float* __restrict__ k_scale, const float* __restrict__ v_scale, u16* __restrict__ o, float scale,
          int B, int H, int S, int T) {
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int tiles = (S + BM - 1) / BM;    // Q tiles a head
    const u32 fastest = GRID_ORDER % 2 ? B * H : tiles, rest = blockIdx.x / fastest, fast = blockIdx.x - rest * fastest;
    const int head = GRID_ORDER % 2 ? fast : rest, tile = GRID_ORDER % 2 ? rest : fast;
    const int row0 = (GRID_ORDER >= 2 ? tiles - 1 - tile : tile) * BM, row = row0 + warp * WM;
    k += (u64)head * T * D;
    v += (u64)head * T * D;
    int keys = T;
    if (CAUSAL && CAUSAL_SKIP) {
        // The last row of the tile sees the most keys; none where there are more rows than keys.
        const int seen = row0 + BM + T - S;
        keys = seen < 0 ? 0 : seen < T ? seen : T;
    }
    const int steps = (keys + BN - 1) / BN;

    QFragments fragments;
    load_q(fragments, q + (u64)head * S * D, row, S, lane);
    Rows rows;
    float factor[MT][2];    // From a product of e4m3 values to an exponent, but for the scale of K
#pragma unroll
    for (int mt = 0; mt < MT; ++mt) {
#pragma unroll
        for (int n = 0; n < D / 8; ++n)
#pragma unroll
            for (int i = 0; i < 4; ++i) rows.o[mt][n][i] = 0.0f;
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            const int r = row + 16 * mt + lane / 4 + 8 * h;
            rows.m[mt][h] = minus_infinity();
            rows.l[mt][h] = 0.0f;
            factor[mt][h] = r < S ? q_scale[head * SCALES(S) + r / SCALE_ROWS] * scale * TO_LOG : 0.0f;
        }
    }

    const u32 k_at = (u32)__cvta_generic_to_shared(shared_memory), v_at = k_at + STAGES * K_BYTES;
    float unit = 1.0f;      // Scale of V that O is in units of
    Staged staged;
    if (PREFETCH && steps > 0) fetch(staged, k, v, 0, T);
#pragma unroll kUnroll
    for (int j = 0; j < steps; ++j) {
        const int key0 = j * BN, slot = STAGES > 1 ? j % STAGES : 0;
        if (!PREFETCH) fetch(staged, k, v, key0, T);
        // With one tile, it must have been read by all before the next takes its place.
        if (STAGES == 1 && j > 0) __syncthreads();
        put(staged, k_at + slot * K_BYTES, v_at + slot * V_BYTES);
        __syncthreads();
        if (PREFETCH && j + 1 < steps) fetch(staged, k, v, key0 + BN, T);
        Scores s;
        scores_of(s, fragments, k_at + slot * K_BYTES, lane);
        if (needs_mask(key0, row, S, T)) mask_scores(s, row, key0, S, T, lane);
        const int block = head * SCALES(T) + key0 / SCALE_ROWS;
        const float of_k = k_scale[block], of_v = v_scale[block];
        float to_log[MT][2];
#pragma unroll
        for (int mt = 0; mt < MT; ++mt)
#pragma unroll
            for (int h = 0; h < 2; ++h) to_log[mt][h] = factor[mt][h] * of_k;
        softmax(s, rows, to_log, unit / of_v);
        unit = of_v;
        add_values(rows, s, v_at + slot * V_BYTES, lane);
    }
    store_rows(rows, o + (u64)head * S * D, row, S, lane, unit);
}
