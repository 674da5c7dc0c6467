// C = A * B in float32, all row-major:  C[m][n] = sum over k of A[m][k] * B[k][n]
//   A is M x K, B is K x N, C is M x N; any sizes, which are arguments: one compilation
//   serves all that are ALIGNED alike.
//
//                    BLOCK_N            Each block owns one BLOCK_M x BLOCK_N tile of C and walks
//                  +---------+          along K in steps of BLOCK_K. Both operands pass through
//          BLOCK_K |  B tile |          shared memory; each thread keeps THREAD_M x THREAD_N sums
//                  +---------+          in registers and reads THREAD_M + THREAD_N values from
//       BLOCK_K         |               shared memory for THREAD_M * THREAD_N multiply-adds.
//      +-------+   +----v----+
//      |       |   |         |          With SPLIT_K > 1 several blocks share a tile of C, each on
//      |A tile |-->|  C tile | BLOCK_M  its part of K; gemm_f32_reduce adds the parts in a fixed
//      +-------+   +---------+          order, so the result does not depend on timing.
//
// Register blocking after V. Volkov and J. Demmel, "Benchmarking GPUs to tune dense linear algebra"
// (SC 2008); the walk over tiles in groups of rows is the usual one for L2 reuse. Needs no headers.

// ---- Problem (set by the search space) ----------------------------------------------------------
#ifndef ALIGNED
#define ALIGNED 1  // 1: K and N are multiples of 4, so that rows begin on 16 bytes; 0: any
#endif

// ---- Parameters ---------------------------------------------------------------------------------
#ifndef BLOCK_M
#define BLOCK_M 64  // rows of C a block: 32 to 256
#endif
#ifndef BLOCK_N
#define BLOCK_N 64  // columns of C a block: 32 to 256
#endif
#ifndef BLOCK_K
#define BLOCK_K 16  // step along K: 8 to 32
#endif
#ifndef THREAD_M
#define THREAD_M 4  // rows of C a thread: 2 to 16
#endif
#ifndef THREAD_N
#define THREAD_N 4  // columns of C a thread: 2 to 16
#endif
#ifndef VEC_A
#define VEC_A 4  // floats a load from A: 1, 2, 4 (1 is used where rows are not ALIGNED)
#endif
#ifndef VEC_B
#define VEC_B 4  // floats a load from B: 1, 2, 4 (1 is used where rows are not ALIGNED)
#endif
#ifndef TRANSPOSE_A
#define TRANSPOSE_A 1  // 1: the A tile lies k-major in shared memory, read as vectors
#endif
#ifndef PAD_A
#define PAD_A 0  // floats added to each row of the A tile: 0, 4
#endif
#ifndef INTERLEAVE
#define INTERLEAVE 0  // 1: a thread's part of C is vectors spread over the tile, not one patch
#endif
#ifndef STAGES
#define STAGES 1  // tiles of A and B in shared memory: 1, 2
#endif
#ifndef PREFETCH
#define PREFETCH 1  // 1: load the next tile into registers before computing on the present one
#endif
#ifndef UNROLL_K
#define UNROLL_K 8  // unrolled steps of the inner loop: 1 to BLOCK_K
#endif
#ifndef SPLIT_K
#define SPLIT_K 1  // blocks that share a tile of C along K: 1 to 8
#endif
#ifndef GROUP_M
#define GROUP_M 1  // tile rows walked together, for L2 reuse of B: 1 to 16
#endif
#ifndef MIN_BLOCKS
#define MIN_BLOCKS 0  // resident blocks a multiprocessor asked of the register allocator; 0: none
#endif

// ---- Derived ------------------------------------------------------------------------------------
// A constant, as nvcc does not replace macros in a #pragma.
constexpr int kUnroll = UNROLL_K;
constexpr int kThreadsN = BLOCK_N / THREAD_N;  // threads side by side along N
constexpr int kThreadsM = BLOCK_M / THREAD_M;  // threads side by side along M
constexpr int kThreads = kThreadsM * kThreadsN;

// A row starts on a vector boundary only where its length is a multiple of the vector.
constexpr int kVecA = ALIGNED ? VEC_A : 1;
constexpr int kVecB = ALIGNED ? VEC_B : 1;
constexpr int kLoadsA = BLOCK_M * BLOCK_K / (kThreads * kVecA);  // loads a thread and tile
constexpr int kLoadsB = BLOCK_K * BLOCK_N / (kThreads * kVecB);

// Vectors of a thread's part of C, also the width of its reads from shared memory.
constexpr int kVecM = THREAD_M < 4 ? THREAD_M : 4;
constexpr int kVecN = THREAD_N < 4 ? THREAD_N : 4;

constexpr int kStrideA = (TRANSPOSE_A ? BLOCK_M : BLOCK_K) + PAD_A;    // floats
constexpr int kTileA = (TRANSPOSE_A ? BLOCK_K : BLOCK_M) * kStrideA;   // floats
constexpr int kTileB = BLOCK_K * BLOCK_N;                              // floats
constexpr int kStage = kTileA + kTileB;                                // floats

#if MIN_BLOCKS > 0
#define LAUNCH_BOUNDS __launch_bounds__(kThreads, MIN_BLOCKS)
#else
#define LAUNCH_BOUNDS __launch_bounds__(kThreads)
#endif

// ---- What the search space promises -------------------------------------------------------------
static_assert(BLOCK_M % THREAD_M == 0 && BLOCK_N % THREAD_N == 0, "threads own whole patches of C");
static_assert(kThreads % 32 == 0 && kThreads <= 1024, "a block is whole warps, at most 1024 threads");
static_assert(BLOCK_M * BLOCK_K % (kThreads * VEC_A) == 0, "threads load equal shares of the A tile");
static_assert(BLOCK_K * BLOCK_N % (kThreads * VEC_B) == 0, "threads load equal shares of the B tile");
static_assert(THREAD_M == 2 || THREAD_M % 4 == 0, "a thread's rows are whole vectors");
static_assert(THREAD_N == 2 || THREAD_N % 4 == 0, "a thread's columns are whole vectors");
static_assert(BLOCK_K % VEC_A == 0, "a vector of A stays within one row of the tile");
static_assert(PAD_A % 4 == 0, "padding keeps rows on vector boundaries");
static_assert(UNROLL_K <= BLOCK_K, "no more steps are unrolled than there are");
static_assert(STAGES == 1 || STAGES == 2, "one tile, or two in turn");
#ifdef THREADS
static_assert(THREADS == kThreads, "the search space and the kernel agree on the block");
#endif
#ifdef SHARED_BYTES
static_assert(SHARED_BYTES == STAGES * kStage * 4, "the search space and the kernel agree on memory");
#endif

// WIDTH floats that are moved at once.
template <int WIDTH>
struct alignas(4 * WIDTH) Pack {
  float at[WIDTH];
};

template <int WIDTH>
__device__ __forceinline__ Pack<WIDTH> read(const float* from) {
  return *reinterpret_cast<const Pack<WIDTH>*>(from);
}

template <int WIDTH>
__device__ __forceinline__ void write(float* to, const Pack<WIDTH>& pack) {
  *reinterpret_cast<Pack<WIDTH>*>(to) = pack;
}

// Row or column of C, within the tile, of a thread's element `index`: its vectors lie together, or
// one in each of several stripes, where neighbouring threads read neighbouring banks.
template <int COUNT, int WIDTH, int THREADS_ALONG>
__device__ __forceinline__ int place(int thread, int index) {
  if (INTERLEAVE) return index / WIDTH * (THREADS_ALONG * WIDTH) + thread * WIDTH + index % WIDTH;
  return thread * COUNT + index;
}

// Loads this thread's share of the A tile at (row0, k0) into registers; zero outside the matrix.
__device__ __forceinline__ void fetch_a(const float* __restrict__ a, int M, int K, int row0, int k0,
                                        Pack<kVecA> (&share)[kLoadsA]) {
#pragma unroll
  for (int i = 0; i < kLoadsA; ++i) {
    const int slot = (i * kThreads + threadIdx.x) * kVecA;
    const int row = row0 + slot / BLOCK_K, k = k0 + slot % BLOCK_K;
    share[i] = Pack<kVecA>{};
    if (row < M && k < K) share[i] = read<kVecA>(a + static_cast<size_t>(row) * K + k);
  }
}

__device__ __forceinline__ void fetch_b(const float* __restrict__ b, int K, int N, int k0, int column0,
                                        Pack<kVecB> (&share)[kLoadsB]) {
#pragma unroll
  for (int i = 0; i < kLoadsB; ++i) {
    const int slot = (i * kThreads + threadIdx.x) * kVecB;
    const int k = k0 + slot / BLOCK_N, column = column0 + slot % BLOCK_N;
    share[i] = Pack<kVecB>{};
    if (k < K && column < N) share[i] = read<kVecB>(b + static_cast<size_t>(k) * N + column);
  }
}

// Writes the fetched shares into a stage of shared memory.
__device__ __forceinline__ void stage(float* tile, const Pack<kVecA> (&share_a)[kLoadsA],
                                      const Pack<kVecB> (&share_b)[kLoadsB]) {
#pragma unroll
  for (int i = 0; i < kLoadsA; ++i) {
    const int slot = (i * kThreads + threadIdx.x) * kVecA;
    const int row = slot / BLOCK_K, k = slot % BLOCK_K;
    if (TRANSPOSE_A) {
#pragma unroll
      for (int j = 0; j < kVecA; ++j) tile[(k + j) * kStrideA + row] = share_a[i].at[j];
    } else {
      write<kVecA>(tile + row * kStrideA + k, share_a[i]);
    }
  }
#pragma unroll
  for (int i = 0; i < kLoadsB; ++i) {
    const int slot = (i * kThreads + threadIdx.x) * kVecB;
    write<kVecB>(tile + kTileA + slot, share_b[i]);
  }
}

// Adds the product of a staged pair of tiles to this thread's sums.
__device__ __forceinline__ void multiply(const float* tile, int thread_m, int thread_n,
                                         float (&sum)[THREAD_M][THREAD_N]) {
#pragma unroll kUnroll
  for (int k = 0; k < BLOCK_K; ++k) {
    float left[THREAD_M], right[THREAD_N];
#pragma unroll
    for (int i = 0; i < THREAD_M; i += kVecM) {
      const int row = place<THREAD_M, kVecM, kThreadsM>(thread_m, i);
      Pack<kVecM> pack;
      if (TRANSPOSE_A) pack = read<kVecM>(tile + k * kStrideA + row);
#pragma unroll
      for (int j = 0; j < kVecM; ++j) {
        left[i + j] = TRANSPOSE_A ? pack.at[j] : tile[(row + j) * kStrideA + k];
      }
    }
#pragma unroll
    for (int i = 0; i < THREAD_N; i += kVecN) {
      const int column = place<THREAD_N, kVecN, kThreadsN>(thread_n, i);
      const Pack<kVecN> pack = read<kVecN>(tile + kTileA + k * BLOCK_N + column);
#pragma unroll
      for (int j = 0; j < kVecN; ++j) right[i + j] = pack.at[j];
    }
#pragma unroll
    for (int i = 0; i < THREAD_M; ++i) {
#pragma unroll
      for (int j = 0; j < THREAD_N; ++j) sum[i][j] += left[i] * right[j];
    }
  }
}

// Stores this thread's sums where they lie inside the matrix.
__device__ __forceinline__ void store(float* __restrict__ out, int M, int N, int row0, int column0,
                                      int thread_m, int thread_n, const float (&sum)[THREAD_M][THREAD_N]) {
#pragma unroll
  for (int i = 0; i < THREAD_M; ++i) {
    const int row = row0 + place<THREAD_M, kVecM, kThreadsM>(thread_m, i);
    if (row >= M) continue;
#pragma unroll
    for (int j = 0; j < THREAD_N; j += kVecN) {
      const int column = column0 + place<THREAD_N, kVecN, kThreadsN>(thread_n, j);
      float* to = out + static_cast<size_t>(row) * N + column;
      if (ALIGNED) {
        Pack<kVecN> pack;
#pragma unroll
        for (int l = 0; l < kVecN; ++l) pack.at[l] = sum[i][j + l];
        if (column < N) write<kVecN>(to, pack);
      } else {
#pragma unroll
        for (int l = 0; l < kVecN; ++l) {
          if (column + l < N) to[l] = sum[i][j + l];
        }
      }
    }
  }
}

// Grid: one block a tile of C, 1, SPLIT_K. Part 0 of a tile goes to C, part z > 0 to partial[z-1].
extern "C" __global__ void LAUNCH_BOUNDS gemm_f32(const float* __restrict__ a,
                                                  const float* __restrict__ b,
                                                  float* __restrict__ c,
                                                  float* __restrict__ partial, int M, int N, int K) {
  extern __shared__ float4 shared[];
  float* const tiles = reinterpret_cast<float*>(shared);

  // Tiles in groups of GROUP_M rows, down each column of the group before the next column.
  const unsigned tiles_m = (M + BLOCK_M - 1) / BLOCK_M, tiles_n = (N + BLOCK_N - 1) / BLOCK_N;
  const unsigned group = blockIdx.x / (GROUP_M * tiles_n), within = blockIdx.x - group * (GROUP_M * tiles_n);
  const unsigned height = min(GROUP_M, tiles_m - group * GROUP_M), along = within / height;
  const int row0 = (group * GROUP_M + within - along * height) * BLOCK_M;
  const int column0 = along * BLOCK_N;
  const int thread_m = threadIdx.x / kThreadsN, thread_n = threadIdx.x % kThreadsN;

  // Steps along K, all of them and those of a block. A part may be empty where K is short; it then
  // stores zeros.
  const int steps = (K + BLOCK_K - 1) / BLOCK_K, share = (steps + SPLIT_K - 1) / SPLIT_K;
  const int first = blockIdx.z * share;
  const int end = min(first + share, steps);

  Pack<kVecA> share_a[kLoadsA];
  Pack<kVecB> share_b[kLoadsB];
  float sum[THREAD_M][THREAD_N] = {};

  if (first < end) {
    fetch_a(a, M, K, row0, first * BLOCK_K, share_a);
    fetch_b(b, K, N, first * BLOCK_K, column0, share_b);
  }
  for (int step = first; step < end; ++step) {
    // With two stages, the barrier of the step before has separated this stage's last readers.
    float* const tile = tiles + (STAGES == 2 ? (step - first) % 2 * kStage : 0);
    if (STAGES == 1) __syncthreads();
    stage(tile, share_a, share_b);
    __syncthreads();
    const bool more = step + 1 < end;
    if (PREFETCH && more) {
      fetch_a(a, M, K, row0, (step + 1) * BLOCK_K, share_a);
      fetch_b(b, K, N, (step + 1) * BLOCK_K, column0, share_b);
    }
    multiply(tile, thread_m, thread_n, sum);
    if (!PREFETCH && more) {
      fetch_a(a, M, K, row0, (step + 1) * BLOCK_K, share_a);
      fetch_b(b, K, N, (step + 1) * BLOCK_K, column0, share_b);
    }
  }

  float* out = c;
  if (SPLIT_K > 1 && blockIdx.z > 0) out = partial + static_cast<size_t>(blockIdx.z - 1) * M * N;
  store(out, M, N, row0, column0, thread_m, thread_n, sum);
}

// Adds the parts of SPLIT_K > 1 to C, one element a thread, always in the same order.
extern "C" __global__ void __launch_bounds__(256) gemm_f32_reduce(float* __restrict__ c, const float* __restrict__ partial,
                                                                  int M, int N) {
  const size_t size = static_cast<size_t>(M) * N;
  const size_t index = static_cast<size_t>(blockIdx.x) * 256 + threadIdx.x;
  if (index >= size) return;
  float sum = c[index];
#pragma unroll
  for (int part = 0; part < SPLIT_K - 1; ++part) sum += partial[part * size + index];
  c[index] = sum;
}
