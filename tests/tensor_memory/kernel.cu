// C = A B^T in tensor memory (tcgen05): A is M x K, B is N x K, both f16, C is M x N, with float32 sums. A block has
// 128 rows and BN columns of C; with CTAS 2 two blocks of a cluster multiply 256 rows together, each with half of the
// columns of B. One thread copies steps of 64 along K into a ring of STAGES, another multiplies, all store.
#include <cuda.h>

#define ROWS 128
#define STEP 64
#define A_BYTES (ROWS * STEP * 2)
#define STAGE_BYTES (A_BYTES + BN / CTAS * STEP * 2)
#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x)
#define GROUP ".cta_group::" TEXT(CTAS)

typedef unsigned u32;
typedef unsigned long long u64;
typedef unsigned short u16;

extern __shared__ __align__(1024) unsigned char stages[];

__device__ __forceinline__ u32 address(const void* p) { return (u32)__cvta_generic_to_shared(p); }

__device__ __forceinline__ void init(u64* barrier, u32 arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(address(barrier)), "r"(arrivals) : "memory");
}

__device__ __forceinline__ void wait(u64* barrier, u32 parity) {
    asm volatile("{\n.reg .pred p;\nL: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n@!p bra L;\n}" ::"r"(address(barrier)), "r"(parity)
                 : "memory");
}

// Copies the box at (row, k) of a map; with CTAS 2 it may complete the barrier of the other block.
__device__ __forceinline__ void copy(u32 to, const CUtensorMap& map, int k, int row, u32 barrier) {
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes" GROUP " [%0], [%1, {%2, %3}], [%4];" ::"r"(to),
                 "l"(&map), "r"(k), "r"(row), "r"(barrier)
                 : "memory");
}

// Signals a barrier of each block when the products so far are complete.
__device__ __forceinline__ void commit(u64* barrier) {
#if CTAS == 2
    asm volatile("tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%0], %1;" ::"r"(address(barrier)),
                 "h"((u16)3)
                 : "memory");
#else
    asm volatile("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];" ::"r"(address(barrier)) : "memory");
#endif
}

// A tile of rows of 128 bytes with a swizzle of 128 bytes.
__device__ __forceinline__ u64 descriptor(u32 at) { return (at & 0x3ffff) >> 4 | 1ull << 16 | 64ull << 32 | 1ull << 46 | 2ull << 61; }

__device__ __forceinline__ void all_blocks() {
    if (CTAS == 2) asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
    else __syncthreads();
}

extern "C" __global__ void __launch_bounds__(128)
gemm(const __grid_constant__ CUtensorMap a_map, const __grid_constant__ CUtensorMap b_map, u16* __restrict__ c, int M, int N, int K) {
    __shared__ __align__(8) u64 full[STAGES], empty[STAGES], done;
    __shared__ u32 columns;
    const int warp = threadIdx.x / 32;
    u32 rank = 0;
    if (CTAS == 2) asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    // Eight rows of tiles at once share columns of B in the L2 cache.
    const int tile = blockIdx.x / CTAS, band = 8 * (N / BN), first = tile / band * 8;
    const int rows = min(8, M / (ROWS * CTAS) - first);
    const int row = ((first + tile % band % rows) * CTAS + rank) * ROWS, column = tile % band / rows * BN;
    if (threadIdx.x == 0) {
        for (int i = 0; i < STAGES; ++i) init(full + i, CTAS), init(empty + i, 1);
        init(&done, 1);
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    if (warp == 0) {
        asm volatile("tcgen05.alloc" GROUP ".sync.aligned.shared::cta.b32 [%0], %1;" ::"r"(address(&columns)), "r"(BN) : "memory");
        asm volatile("tcgen05.relinquish_alloc_permit" GROUP ".sync.aligned;" ::: "memory");
    }
    asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory");
    __syncthreads();
    all_blocks();
    asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
    const u32 d = columns, base = address(stages);
    if (threadIdx.x == 32) {
        for (int i = 0; i < K / STEP; ++i) {
            const int s = i % STAGES;
            const u32 at = base + s * STAGE_BYTES;
            wait(empty + s, i / STAGES % 2 ^ 1);
            // The first block of a pair multiplies, so its barrier counts the copies of both.
            const u32 barrier = address(full + s) & (CTAS == 2 ? 0xfeffffff : 0xffffffff);
            asm volatile("mbarrier.arrive.expect_tx.release.cluster.shared::cluster.b64 _, [%0], %1;" ::"r"(barrier), "r"(STAGE_BYTES) : "memory");
            copy(at, a_map, i * STEP, row, barrier);
            copy(at + A_BYTES, b_map, i * STEP, column + rank * (BN / CTAS), barrier);
        }
    } else if (threadIdx.x == 0 && rank == 0) {
        // Halves, float32 sums.
        const u32 form = 1u << 4 | BN / 8 << 17 | ROWS * CTAS / 16 << 24;
        for (int i = 0; i < K / STEP; ++i) {
            const int s = i % STAGES;
            const u64 a = descriptor(base + s * STAGE_BYTES), b = descriptor(base + s * STAGE_BYTES + A_BYTES);
            wait(full + s, i / STAGES % 2);
            asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
#pragma unroll
            for (int k = 0; k < STEP / 16; ++k)
                asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %4, 0;\ntcgen05.mma" GROUP ".kind::f16 [%0], %1, %2, %3, p;\n}" ::"r"(d), "l"(a + 2 * k),
                             "l"(b + 2 * k), "r"(form), "r"(i + k)
                             : "memory");
            commit(empty + s);
        }
        commit(&done);
    }
    __syncwarp();
    wait(&done, 0);
    asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
    u16* to = c + (u64)(row + threadIdx.x) * N + column;
    for (int n = 0; n < BN; n += 8) {
        u32 sums[8];
        asm volatile("tcgen05.ld.sync.aligned.32x32b.x8.b32 {%0, %1, %2, %3, %4, %5, %6, %7}, [%8];"
                     : "=r"(sums[0]), "=r"(sums[1]), "=r"(sums[2]), "=r"(sums[3]), "=r"(sums[4]), "=r"(sums[5]), "=r"(sums[6]), "=r"(sums[7])
                     : "r"(d + n + (warp * 32 << 16)));
        asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory");
        u32 pairs[4];
#pragma unroll
        for (int i = 0; i < 4; ++i)
            asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pairs[i]) : "f"(__uint_as_float(sums[2 * i + 1])), "f"(__uint_as_float(sums[2 * i])));
        *(uint4*)(to + n) = make_uint4(pairs[0], pairs[1], pairs[2], pairs[3]);
    }
    asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory");
    __syncthreads();
    all_blocks();
    asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
    if (warp == 0) asm volatile("tcgen05.dealloc" GROUP ".sync.aligned.b32 %0, %1;" ::"r"(d), "r"(BN) : "memory");
}
