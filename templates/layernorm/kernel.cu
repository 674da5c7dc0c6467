// Layer normalisation in fp16, float32 inside:
//
//   y[r][n] = (x[r][n] - mean_r) / sqrt(variance_r + eps) * gamma[n] + beta[n]
//
//   x and y are R x N, row-major; the variance is that of the row (divided by N).
//
//   row r:  |t0 t1 t2 ... |t0 t1 t2 ... |    LANES = THREADS / ROWS threads a row; neighbouring
//            <-VEC->                         threads read neighbouring vectors of VEC halves.
//
// Pass 1 finds mean and variance (together, merged after Chan, Golub and LeVeque 1979, or one after
// the other), pass 2 writes. Between them a row stays in registers, in shared memory, or is read
// again. A thread only ever meets its own elements, so that only the joins need barriers.

// ---- Problem (set by the search space) ----
#ifndef R
#define R 4096              // Rows
#endif
#ifndef N
#define N 4096              // Elements a row
#endif

// ---- Parameters ----
#ifndef THREADS
#define THREADS 256         // Threads a block
#endif
#ifndef ROWS
#define ROWS 1              // Rows a block works on at a time
#endif
#ifndef VEC
#define VEC 8               // Halves an access: 1, 2, 4, 8 (1 where N is no multiple)
#endif
#ifndef KEEP
#define KEEP 2              // Between the passes a row is 0: read again, 1: in shared memory, 2: in registers
#endif
#ifndef ONLINE
#define ONLINE 1            // 1: mean and variance in one pass, 0: one after the other
#endif
#ifndef UNROLL
#define UNROLL 2            // Vectors under way a thread (rows in registers are wholly unrolled)
#endif
#ifndef LOAD
#define LOAD 0              // Loads 0: plain, 1: read-only, 2: read-only past L1
#endif
#ifndef STORE
#define STORE 0             // Stores 0: plain, 1: streaming
#endif
#ifndef PERSISTENT
#define PERSISTENT 0        // 0: a block for each ROWS rows; else blocks a multiprocessor that take them in turn
#endif
#ifndef MIN_BLOCKS
#define MIN_BLOCKS 0        // Blocks a multiprocessor asked of the register allocator; 0: no wish
#endif

// ---- Derived ----
#define LANES (THREADS / ROWS)                          // Threads a row
#define WIDE (N % VEC == 0 ? VEC : 1)                   // Halves an access: rows follow each other without gaps
#define STEPS ((N + LANES * WIDE - 1) / (LANES * WIDE)) // Vectors a thread
#define GROUPS ((R + ROWS - 1) / ROWS)                  // Units of work

static_assert(THREADS % 32 == 0 && THREADS <= 1024, "a block is whole warps");
static_assert(THREADS % ROWS == 0 && (LANES & (LANES - 1)) == 0, "a power of two of threads shares a row");
static_assert(KEEP != 2 || STEPS * WIDE <= 128, "a thread's part of a row fits in its registers");

typedef unsigned int u32;
typedef unsigned short u16;
typedef unsigned long long u64;

extern __shared__ __align__(16) unsigned char kept_rows[];     // KEEP 1: ROWS rows of N halves

// The raw bits of `WIDE` halves.
struct __align__(WIDE < 2 ? 4 : 2 * WIDE) Vector {
    u32 bits[(WIDE + 1) / 2];
};

#if LOAD == 1
#define LOAD_AS "ld.global.nc"
#elif LOAD == 2
#define LOAD_AS "ld.global.nc.L1::no_allocate"
#else
#define LOAD_AS "ld.global"
#endif
#if STORE
#define STORE_AS "st.global.cs"
#else
#define STORE_AS "st.global"
#endif

__device__ __forceinline__ Vector load(const u16* from) {
    Vector v;
    if constexpr (WIDE == 8) {
        asm volatile(LOAD_AS ".v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(v.bits[0]), "=r"(v.bits[1]), "=r"(v.bits[2]), "=r"(v.bits[3]) : "l"(from));
    } else if constexpr (WIDE == 4) {
        asm volatile(LOAD_AS ".v2.u32 {%0, %1}, [%2];" : "=r"(v.bits[0]), "=r"(v.bits[1]) : "l"(from));
    } else if constexpr (WIDE == 2) {
        asm volatile(LOAD_AS ".u32 %0, [%1];" : "=r"(v.bits[0]) : "l"(from));
    } else {
        u16 x;
        asm volatile(LOAD_AS ".u16 %0, [%1];" : "=h"(x) : "l"(from));
        v.bits[0] = x;
    }
    return v;
}

__device__ __forceinline__ void store(u16* to, const Vector& v) {
    if constexpr (WIDE == 8) {
        asm volatile(STORE_AS ".v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(to), "r"(v.bits[0]), "r"(v.bits[1]), "r"(v.bits[2]), "r"(v.bits[3]) : "memory");
    } else if constexpr (WIDE == 4) {
        asm volatile(STORE_AS ".v2.u32 [%0], {%1, %2};" ::"l"(to), "r"(v.bits[0]), "r"(v.bits[1]) : "memory");
    } else if constexpr (WIDE == 2) {
        asm volatile(STORE_AS ".u32 [%0], %1;" ::"l"(to), "r"(v.bits[0]) : "memory");
    } else {
        asm volatile(STORE_AS ".u16 [%0], %1;" ::"l"(to), "h"((u16)v.bits[0]) : "memory");
    }
}

// Element `i` of a vector as a float.
__device__ __forceinline__ float element(const Vector& v, int i) {
    float x;
    asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"((u16)(v.bits[i / 2] >> 16 * (i % 2))));
    return x;
}

// A vector into the shared copy of its row, and back.
__device__ __forceinline__ void keep(u16* to, const Vector& v) {
    if constexpr (WIDE == 1) *to = (u16)v.bits[0];
    else *(Vector*)to = v;
}
__device__ __forceinline__ Vector kept(const u16* from) {
    if constexpr (WIDE == 1) return {{*from}};
    else return *(const Vector*)from;
}

// Two floats rounded to a pair of halves.
__device__ __forceinline__ u32 pack(float low, float high) {
    u32 pair;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
    return pair;
}

// How many elements, their mean, and the sum of the squares of their distances from it.
struct Moments {
    float count, mean, squares;
};

__device__ __forceinline__ Moments merge(Moments a, Moments b) {
    const float count = a.count + b.count, apart = b.mean - a.mean;
    // Two empty parts stay empty.
    const float share = count > 0.0f ? b.count / count : 0.0f;
    return {count, a.mean + apart * share, a.squares + b.squares + apart * apart * a.count * share};
}

// The result of all threads of a row, for each of them.
__device__ __forceinline__ Moments join(Moments moments, Moments* shared) {
#pragma unroll
    for (int bit = (LANES < 32 ? LANES : 32) / 2; bit > 0; bit /= 2)
        moments = merge(moments, {__shfl_xor_sync(0xffffffffu, moments.count, bit), __shfl_xor_sync(0xffffffffu, moments.mean, bit),
                                  __shfl_xor_sync(0xffffffffu, moments.squares, bit)});
    if constexpr (LANES > 32) {
        constexpr int WARPS = (LANES + 31) / 32;     // Of a row
        const int warp = threadIdx.x / 32, first = warp / WARPS * WARPS;
        // What the join before this one left has been read by all.
        __syncthreads();
        if (threadIdx.x % 32 == 0) shared[warp] = moments;
        __syncthreads();
        moments = shared[first];
        for (int i = 1; i < WARPS; ++i) moments = merge(moments, shared[first + i]);
    }
    return moments;
}

// The mean of a vector's elements, and with SQUARED the squares of their distances from it.
__device__ __forceinline__ Moments moments_of(const Vector& v, bool squared) {
    float sum = 0.0f, squares = 0.0f;
#pragma unroll
    for (int e = 0; e < WIDE; ++e) sum += element(v, e);
    const float mean = sum / WIDE;
    if (squared)
#pragma unroll
        for (int e = 0; e < WIDE; ++e) squares += (element(v, e) - mean) * (element(v, e) - mean);
    return {(float)WIDE, mean, squares};
}

// ROWS rows at a time: grid [GROUPS] or fewer blocks, block [THREADS].
extern "C" __global__ void
#if MIN_BLOCKS
__launch_bounds__(THREADS, MIN_BLOCKS)
#else
__launch_bounds__(THREADS)
#endif
layernorm(const u16* __restrict__ x, const u16* __restrict__ gamma, const u16* __restrict__ beta, u16* __restrict__ y, float eps) {
    __shared__ Moments shared[32];
    const int lane = threadIdx.x % LANES, local = threadIdx.x / LANES;
    u16* mine = (u16*)kept_rows + (KEEP == 1 ? local * N : 0);
    constexpr int IN_REGISTERS = KEEP == 2 ? STEPS : 1;
    constexpr int UNROLLED = KEEP == 2 ? STEPS : UNROLL;
    for (int group = blockIdx.x; group < GROUPS; group += PERSISTENT ? gridDim.x : GROUPS) {
        const int row = group * ROWS + local;
        const u64 base = (u64)row * N;
        const bool real = row < R;      // The last group may have fewer rows
        Vector held[IN_REGISTERS];
        Moments moments = {0.0f, 0.0f, 0.0f};
#pragma unroll UNROLLED
        for (int i = 0; i < STEPS; ++i) {
            const int at = (lane + i * LANES) * WIDE;
            if (real && at < N) {
                const Vector v = load(x + base + at);
                if (KEEP == 1) keep(mine + at, v);
                if (KEEP == 2) held[i % IN_REGISTERS] = v;
                moments = merge(moments, moments_of(v, ONLINE));
            }
        }
        moments = join(moments, shared);
        if (!ONLINE) {
            float squares = 0.0f;
#pragma unroll UNROLLED
            for (int i = 0; i < STEPS; ++i) {
                const int at = (lane + i * LANES) * WIDE;
                if (real && at < N) {
                    const Vector v = KEEP == 2 ? held[i % IN_REGISTERS] : KEEP == 1 ? kept(mine + at) : load(x + base + at);
#pragma unroll
                    for (int e = 0; e < WIDE; ++e) squares += (element(v, e) - moments.mean) * (element(v, e) - moments.mean);
                }
            }
            // All parts have one mean now, so that their squares simply add up.
            moments = join({1.0f, moments.mean, squares}, shared);
        }
        const float inverse = rsqrtf(moments.squares / N + eps);
#pragma unroll UNROLLED
        for (int i = 0; i < STEPS; ++i) {
            const int at = (lane + i * LANES) * WIDE;
            if (real && at < N) {
                const Vector v = KEEP == 2 ? held[i % IN_REGISTERS] : KEEP == 1 ? kept(mine + at) : load(x + base + at);
                const Vector scale = load(gamma + at), shift = load(beta + at);
                float z[WIDE + 1];
#pragma unroll
                for (int e = 0; e < WIDE; ++e) z[e] = (element(v, e) - moments.mean) * inverse * element(scale, e) + element(shift, e);
                z[WIDE] = 0.0f;
                Vector out;
#pragma unroll
                for (int e = 0; e < WIDE; e += 2) out.bits[e / 2] = pack(z[e], z[e + 1]);
                store(y + base + at, out);
            }
        }
    }
}
