// Sums of rows in float32: y[r] = sum over n of x[r][n].  x is R x N, row-major; R = 1 sums everything.
//
//   row r:  | part 0       | part 1       | ...   PARTS parts of a row, each for LANES threads of a
//           |t0 t1 .. t0 ..|t0 t1 ..      |       block that read ITEMS vectors each; LANES is
//            <-VEC->                              THREADS / ROWS, where a block has ROWS rows.
//
// Each thread keeps UNROLL sums, so that as many loads are under way. Parts are added by a second
// kernel in a fixed order: the result does not depend on timing.

// ---- Problem (set by the search space) ----
#ifndef R
#define R 1                 // Rows
#endif
#ifndef N
#define N 16777216          // Elements a row
#endif

// ---- Parameters ----
#ifndef THREADS
#define THREADS 256         // Threads a block
#endif
#ifndef ROWS
#define ROWS 1              // Rows a block
#endif
#ifndef VEC
#define VEC 4               // Floats a load: 1, 2, 4 (1 where N is no multiple)
#endif
#ifndef UNROLL
#define UNROLL 4            // Loads under way a thread
#endif
#ifndef ITEMS
#define ITEMS 16            // Loads a thread; they decide how many parts a row has
#endif
#ifndef LOAD
#define LOAD 0              // Loads 0: plain, 1: read-only, 2: read-only past L1, 3: streaming
#endif
#ifndef INTERLEAVE
#define INTERLEAVE 1        // 1: a thread's vectors lie LANES apart, 0: each thread reads a piece of its own
#endif
#ifndef TREE
#define TREE 0              // Threads join by 0: shuffles, 1: a tree in shared memory
#endif
#ifndef JOIN_THREADS
#define JOIN_THREADS 128    // Threads that add the parts of a row
#endif
#ifndef MIN_BLOCKS
#define MIN_BLOCKS 0        // Blocks a multiprocessor asked of the register allocator; 0: no wish
#endif

// ---- Derived ----
#define LANES (THREADS / ROWS)                      // Threads a row
#define WIDE (N % VEC == 0 ? VEC : 1)               // Floats a load: rows follow each other without gaps
#define PART (LANES * WIDE * ITEMS)                 // Elements a part
#define PARTS ((N + PART - 1) / PART)               // Parts a row

static_assert(THREADS % 32 == 0 && THREADS <= 1024, "a block is whole warps");
static_assert(THREADS % ROWS == 0 && (LANES & (LANES - 1)) == 0, "a power of two of threads shares a row");
static_assert(UNROLL <= ITEMS, "no more loads are under way than a thread has");
static_assert((JOIN_THREADS & (JOIN_THREADS - 1)) == 0 && JOIN_THREADS >= 32, "the last join is a tree");

typedef unsigned int u32;
typedef unsigned long long u64;

#if LOAD == 1
#define LOAD_AS "ld.global.nc"
#elif LOAD == 2
#define LOAD_AS "ld.global.nc.L1::no_allocate"
#elif LOAD == 3
#define LOAD_AS "ld.global.cs"
#else
#define LOAD_AS "ld.global"
#endif

// The sum of the `WIDE` floats at `from`.
__device__ __forceinline__ float load_sum(const float* from) {
    float x[4];
    if constexpr (WIDE == 4) {
        asm volatile(LOAD_AS ".v4.f32 {%0, %1, %2, %3}, [%4];" : "=f"(x[0]), "=f"(x[1]), "=f"(x[2]), "=f"(x[3]) : "l"(from));
        return (x[0] + x[1]) + (x[2] + x[3]);
    } else if constexpr (WIDE == 2) {
        asm volatile(LOAD_AS ".v2.f32 {%0, %1}, [%2];" : "=f"(x[0]), "=f"(x[1]) : "l"(from));
        return x[0] + x[1];
    } else {
        asm volatile(LOAD_AS ".f32 %0, [%1];" : "=f"(x[0]) : "l"(from));
        return x[0];
    }
}

// The sum over groups of `GROUP` neighbouring threads of a block of `BLOCK`; thread 0 of a group has it.
template <int GROUP, int BLOCK>
__device__ __forceinline__ float join(float sum, float* shared) {
    const int thread = threadIdx.x, lane = thread % GROUP;
    if constexpr (TREE) {
        shared[thread] = sum;
        __syncthreads();
#pragma unroll
        for (int half = GROUP / 2; half > 0; half /= 2) {
            if (lane < half) shared[thread] += shared[thread + half];
            __syncthreads();
        }
        return shared[thread - lane];
    } else {
#pragma unroll
        for (int bit = (GROUP < 32 ? GROUP : 32) / 2; bit > 0; bit /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, bit);
        if constexpr (GROUP > 32) {
            if (thread % 32 == 0) shared[thread / 32] = sum;
            __syncthreads();
            sum = 0.0f;
            if (lane == 0)
                for (int i = 0; i < GROUP / 32; ++i) sum += shared[thread / 32 + i];
        }
        return sum;
    }
}

// One part of ROWS rows a block: grid [PARTS, ceil(R / ROWS)], block [THREADS].
extern "C" __global__ void
#if MIN_BLOCKS
__launch_bounds__(THREADS, MIN_BLOCKS)
#else
__launch_bounds__(THREADS)
#endif
reduce_sum(const float* __restrict__ x, float* __restrict__ y, float* __restrict__ partial) {
    __shared__ float shared[TREE ? THREADS : 32];
    const int part = blockIdx.x, row = blockIdx.y * ROWS + threadIdx.x / LANES, lane = threadIdx.x % LANES;
    const u64 first = (u64)part * PART, end = first + PART < N ? first + PART : N;
    float sums[UNROLL];
#pragma unroll
    for (int i = 0; i < UNROLL; ++i) sums[i] = 0.0f;
    if (row < R) {
        const float* from = x + (u64)row * N;
        constexpr u64 PIECE = ITEMS * WIDE;
        constexpr u64 APART = INTERLEAVE ? LANES * WIDE : WIDE;     // From one of a thread's vectors to the next
        const u64 begin = INTERLEAVE ? first + lane * WIDE : first + lane * PIECE;
        const u64 stop = INTERLEAVE ? end : begin + PIECE < end ? begin + PIECE : end;
        u64 at = begin;
        for (; at + (UNROLL - 1) * APART < stop; at += UNROLL * APART)
#pragma unroll
            for (int i = 0; i < UNROLL; ++i) sums[i] += load_sum(from + at + i * APART);
        for (; at < stop; at += APART) sums[0] += load_sum(from + at);
    }
#pragma unroll
    for (int i = 1; i < UNROLL; ++i) sums[0] += sums[i];
    const float sum = join<LANES, THREADS>(sums[0], shared);
    if (row < R && lane == 0) (PARTS > 1 ? partial + (u64)row * PARTS + part : y + row)[0] = sum;
}

// Adds the parts of a row: grid [R], block [JOIN_THREADS].
extern "C" __global__ void __launch_bounds__(JOIN_THREADS) reduce_parts(const float* __restrict__ partial, float* __restrict__ y) {
    __shared__ float shared[TREE ? JOIN_THREADS : 32];
    float sum = 0.0f;
    for (int i = threadIdx.x; i < PARTS; i += JOIN_THREADS) sum += partial[(u64)blockIdx.x * PARTS + i];
    sum = join<JOIN_THREADS, JOIN_THREADS>(sum, shared);
    if (threadIdx.x == 0) y[blockIdx.x] = sum;
}
