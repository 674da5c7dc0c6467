// Two-dimensional filter in float32, output where the filter lies inside the image:
//
//   y[r][c] = sum over i, j of x[r + i][c + j] * f[i][j]
//
//   y is HEIGHT x WIDTH, f is FILTER_HEIGHT x FILTER_WIDTH, x is larger than y by the filter less one.
//
//       BLOCK_X * TILE_X                  A block owns a tile of y, a thread TILE_Y x TILE_X
//     +-----------------+ - - +           elements of it: neighbours in a row (STRIDED 0) or
//     | t0 t1 t2 ...    |     |           BLOCK_X apart (STRIDED 1). The tile of x with its halo
//     |                 |halo |           is read from shared memory, or from global memory
//     +-----------------+     |           through the caches.
//     | - - - - - - - - - - - +
//
// In the spirit of the convolution of van Werkhoven et al. 2014, "Optimizing convolution
// operations on GPUs using adaptive tiling".

// ---- Problem (set by the search space) ----
#ifndef HEIGHT
#define HEIGHT 4096         // Rows of y
#endif
#ifndef WIDTH
#define WIDTH 4096          // Columns of y
#endif
#ifndef FILTER_HEIGHT
#define FILTER_HEIGHT 15    // Rows of the filter
#endif
#ifndef FILTER_WIDTH
#define FILTER_WIDTH 15     // Columns of the filter
#endif

// ---- Parameters ----
#ifndef BLOCK_X
#define BLOCK_X 32          // Threads of a block along a row
#endif
#ifndef BLOCK_Y
#define BLOCK_Y 8           // Threads of a block along a column
#endif
#ifndef TILE_X
#define TILE_X 2            // Columns of y a thread
#endif
#ifndef TILE_Y
#define TILE_Y 2            // Rows of y a thread
#endif
#ifndef USE_SHARED
#define USE_SHARED 1        // 1: the tile of x passes through shared memory
#endif
#ifndef PADDING
#define PADDING 0           // 1: rows of the shared tile are padded against bank conflicts
#endif
#ifndef FILTER_SHARED
#define FILTER_SHARED 0     // 1: the filter lies in shared memory, 0: it is read through the caches
#endif
#ifndef READ_ONLY
#define READ_ONLY 1         // 1: loads go the read-only way
#endif
#ifndef STRIDED
#define STRIDED 1           // 1: a thread's columns lie BLOCK_X apart, 0: side by side
#endif
#ifndef REUSE
#define REUSE 0             // 1: a thread holds the row of x that its columns share (STRIDED 0)
#endif
#ifndef UNROLL_ROWS
#define UNROLL_ROWS 0       // 1: the loop over filter rows is unrolled as well as that over columns
#endif
#ifndef MIN_BLOCKS
#define MIN_BLOCKS 0        // Blocks a multiprocessor asked of the register allocator; 0: no wish
#endif

// ---- Derived ----
// A constant, as nvcc does not replace macros in a #pragma.
constexpr int kUnroll = UNROLL_ROWS ? FILTER_HEIGHT : 1;
#define THREAD_COUNT (BLOCK_X * BLOCK_Y)
#define OUT_X (BLOCK_X * TILE_X)                    // Columns of y a block
#define OUT_Y (BLOCK_Y * TILE_Y)
#define IN_X (OUT_X + FILTER_WIDTH - 1)             // Columns of x a block
#define IN_Y (OUT_Y + FILTER_HEIGHT - 1)
#define X_WIDTH (WIDTH + FILTER_WIDTH - 1)          // Columns of x
#define X_HEIGHT (HEIGHT + FILTER_HEIGHT - 1)
// Side by side, neighbouring threads read TILE_X floats apart; an odd row length keeps rows apart.
#define ROW_LENGTH (IN_X + (PADDING ? 1 - IN_X % 2 : 0))
#define FILTER_AT (USE_SHARED ? IN_Y * ROW_LENGTH : 0)  // Where the shared filter starts, floats
#define USED (FILTER_AT + (FILTER_SHARED ? FILTER_HEIGHT * FILTER_WIDTH : 0))
#define RESERVED ((USED + 3) / 4 * 4)               // Whole vectors: the compiler may widen the last loads

static_assert(THREAD_COUNT <= 1024, "a block has at most 1024 threads");
static_assert(USE_SHARED || !PADDING, "only a shared tile has rows to pad");
static_assert(!REUSE || !STRIDED, "columns that lie apart share nothing");

typedef unsigned int u32;
typedef unsigned long long u64;

extern __shared__ __align__(16) float shared_memory[];

__device__ __forceinline__ float load(const float* from) {
    if (READ_ONLY) return __ldg(from);
    float x;
    asm volatile("ld.global.f32 %0, [%1];" : "=f"(x) : "l"(from));
    return x;
}

// Column of this thread's element `i` within the block's tile.
__device__ __forceinline__ int column_of(int i) {
    return STRIDED ? threadIdx.x + i * BLOCK_X : threadIdx.x * TILE_X + i;
}

// Element (row, column) of the block's part of x: what lies outside the image belongs to elements
// of y that are not stored.
__device__ __forceinline__ float read(const float* x, int row0, int column0, int row, int column) {
    if (USE_SHARED) return shared_memory[row * ROW_LENGTH + column];
    const bool inside = (HEIGHT % OUT_Y == 0 || row0 + row < X_HEIGHT) && (WIDTH % OUT_X == 0 || column0 + column < X_WIDTH);
    return inside ? load(x + (u64)(row0 + row) * X_WIDTH + column0 + column) : 0.0f;
}

__device__ __forceinline__ float weight(const float* filter, int i, int j) {
    return FILTER_SHARED ? shared_memory[FILTER_AT + i * FILTER_WIDTH + j] : load(filter + i * FILTER_WIDTH + j);
}

// Grid [ceil(WIDTH / OUT_X), ceil(HEIGHT / OUT_Y)], block [BLOCK_X, BLOCK_Y].
extern "C" __global__ void
#if MIN_BLOCKS
__launch_bounds__(THREAD_COUNT, MIN_BLOCKS)
#else
__launch_bounds__(THREAD_COUNT)
#endif
conv2d(const float* __restrict__ x, const float* __restrict__ filter, float* __restrict__ y) {
    const int row0 = blockIdx.y * OUT_Y, column0 = blockIdx.x * OUT_X;
    if (USE_SHARED) {
        for (int row = threadIdx.y; row < IN_Y; row += BLOCK_Y)
            for (int column = threadIdx.x; column < ROW_LENGTH; column += BLOCK_X) {
                const bool inside = row0 + row < X_HEIGHT && column0 + column < X_WIDTH;
                shared_memory[row * ROW_LENGTH + column] = inside ? load(x + (u64)(row0 + row) * X_WIDTH + column0 + column) : 0.0f;
            }
    }
    if (FILTER_SHARED)
        for (int i = threadIdx.y * BLOCK_X + threadIdx.x; i < FILTER_HEIGHT * FILTER_WIDTH; i += THREAD_COUNT)
            shared_memory[FILTER_AT + i] = load(filter + i);
    if (USE_SHARED || FILTER_SHARED) {
        // What a widened load may read beside what is used is written too.
        if (threadIdx.y == 0 && threadIdx.x < RESERVED - USED) shared_memory[USED + threadIdx.x] = 0.0f;
        __syncthreads();
    }

    float sum[TILE_Y][TILE_X];
#pragma unroll
    for (int r = 0; r < TILE_Y; ++r)
#pragma unroll
        for (int c = 0; c < TILE_X; ++c) sum[r][c] = 0.0f;
#pragma unroll kUnroll
    for (int i = 0; i < FILTER_HEIGHT; ++i)
#pragma unroll
        for (int r = 0; r < TILE_Y; ++r) {
            const int row = threadIdx.y + r * BLOCK_Y + i;
            if (REUSE) {
                float line[TILE_X + FILTER_WIDTH - 1];
#pragma unroll
                for (int j = 0; j < TILE_X + FILTER_WIDTH - 1; ++j) line[j] = read(x, row0, column0, row, threadIdx.x * TILE_X + j);
#pragma unroll
                for (int j = 0; j < FILTER_WIDTH; ++j)
#pragma unroll
                    for (int c = 0; c < TILE_X; ++c) sum[r][c] += line[c + j] * weight(filter, i, j);
            } else {
#pragma unroll
                for (int j = 0; j < FILTER_WIDTH; ++j)
#pragma unroll
                    for (int c = 0; c < TILE_X; ++c) sum[r][c] += read(x, row0, column0, row, column_of(c) + j) * weight(filter, i, j);
            }
        }
#pragma unroll
    for (int r = 0; r < TILE_Y; ++r)
#pragma unroll
        for (int c = 0; c < TILE_X; ++c) {
            const int row = row0 + threadIdx.y + r * BLOCK_Y, column = column0 + column_of(c);
            if (row < HEIGHT && column < WIDTH) y[(u64)row * WIDTH + column] = sum[r][c];
        }
}
