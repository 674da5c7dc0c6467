// Products of a warp-group and copies of boxes, for kernels of sm_90a. Macros, so that a hazard is found on
// the kernel's own line.
typedef unsigned long long u64;
typedef unsigned u32;
typedef unsigned short u16;

struct alignas(64) CUtensorMap_st {
    u64 opaque[16];
};
typedef CUtensorMap_st CUtensorMap;

#define MAP const __grid_constant__ CUtensorMap
#define TILE(name, elements) __shared__ __align__(1024) u16 name[elements]
#define FENCE_ASYNC() asm volatile("fence.proxy.async.shared::cta;" ::: "memory")
#define WG_FENCE() asm volatile("wgmma.fence.sync.aligned;" ::: "memory")
#define WG_COMMIT() asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory")
#define WG_WAIT(left) asm volatile("wgmma.wait_group.sync.aligned " #left ";" ::: "memory")

// A descriptor: offsets in bytes, swizzle 0 none, 1 of 128, 2 of 64, 3 of 32 bytes.
__device__ __forceinline__ u64 descriptor(const void* p, u64 leading, u64 stride, u64 swizzle) {
    u64 at = (u32)__cvta_generic_to_shared(p);
    return at >> 4 | leading >> 4 << 16 | stride >> 4 << 32 | swizzle << 62;
}

// 64 rows, 8 columns, 16 deep: both operands in shared memory along K.
#define MMA(d, a, b, adds)                                                                                       \
    asm volatile("{\n .reg .pred p;\n setp.ne.b32 p, %6, 0;\n"                                                   \
                 " wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1, %2, %3}, %4, %5, p, 1, 1, 0, 0;\n}" \
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])                                                \
                 : "l"(a), "l"(b), "r"((int)(adds)))

// The same with A in registers.
#define MMA_RS(d, a, b)                                                                                                \
    asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1, %2, %3}, {%4, %5, %6, %7}, %8, 1, 1, 1, 0;" \
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])                                                      \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b))

// A step of 64 along K of tiles with rows of 128 bytes.
#define MMA_64(d, sa, sb)                                                                       \
    for (int k = 0; k < 4; ++k)                                                                 \
    MMA(d, descriptor(sa + 16 * k, 16, 1024, 1), descriptor(sb + 16 * k, 16, 1024, 1), 1)

// Two stages of tiles, each with barriers of one arrival that say that it is full, and empty.
#define TWO_STAGES()                                                                                              \
    __shared__ __align__(1024) u16 sa[2][4096];                                                                   \
    __shared__ __align__(1024) u16 sb[2][512];                                                                    \
    __shared__ __align__(8) u64 full[2], empty[2];                                                                \
    if (threadIdx.x == 0) {                                                                                       \
        for (int i = 0; i < 2; ++i) {                                                                             \
            asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(ADDRESS(&full[i])) : "memory");           \
            asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(ADDRESS(&empty[i])) : "memory");          \
        }                                                                                                         \
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");                                        \
    }                                                                                                             \
    __syncthreads()

#define LOAD_BOX(to, map, x, y, bar)                                                                               \
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, "     \
                 "{%2, %3}], [%4];" ::"r"(ADDRESS(to)), "l"(&map), "r"(x), "r"(y), "r"(ADDRESS(&bar)) : "memory")

#define STORE_BOX(from, map, x, y)                                                                          \
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%1, %2}], [%3];" ::"l"(&map), \
                 "r"(x), "r"(y), "r"(ADDRESS(from)) : "memory")

// Columns of pixels, and rows of a matrix by their numbers.
#define LOAD_COLUMN(to, map, w, h, n, right, down, bar)                                                              \
    asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%0], [%1, "    \
                 "{0, %2, %3, %4}], [%5], {%6, %7};" ::"r"(ADDRESS(to)), "l"(&map), "r"(w), "r"(h), "r"(n),         \
                 "r"(ADDRESS(&bar)), "h"((u16)(right)), "h"((u16)(down)) : "memory")

#define STORE_COLUMN(from, map, w, h, n)                                                                             \
    asm volatile("cp.async.bulk.tensor.4d.global.shared::cta.im2col_no_offs.bulk_group [%0, {0, %1, %2, %3}], "      \
                 "[%4];" ::"l"(&map), "r"(w), "r"(h), "r"(n), "r"(ADDRESS(from)) : "memory")

#define GATHER(to, map, x, a, b, c, d, bar)                                                                          \
    asm volatile("cp.async.bulk.tensor.2d.shared::cta.global.tile::gather4.mbarrier::complete_tx::bytes [%0], [%1, " \
                 "{%2, %3, %4, %5, %6}], [%7];" ::"r"(ADDRESS(to)), "l"(&map), "r"(x), "r"(a), "r"(b), "r"(c),       \
                 "r"(d), "r"(ADDRESS(&bar)) : "memory")

#define SCATTER(from, map, x, a, b, c, d)                                                                            \
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile::scatter4.bulk_group [%0, {%1, %2, %3, %4, %5}], " \
                 "[%6];" ::"l"(&map), "r"(x), "r"(a), "r"(b), "r"(c), "r"(d), "r"(ADDRESS(from)) : "memory")

#define STORE_COMMIT() asm volatile("cp.async.bulk.commit_group;" ::: "memory")
#define STORE_WAIT() asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory")
#define ARRIVE(bar) asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(ADDRESS(&bar)) : "memory")

// Waits for a phase whose parity is computed.
#define WAIT_FOR(bar, parity)                                                                                \
    asm volatile("{\n .reg .pred p;\nL: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n @!p bra L;\n}" \
                 ::"r"(ADDRESS(&bar)), "r"(parity) : "memory")

// Stores the accumulators of 8 columns as rows of `columns`.
__device__ __forceinline__ void store8(float* c, const float* d, int columns) {
    int t = threadIdx.x % 128, row = t / 32 * 16 + t % 32 / 4, column = t % 4 * 2;
    c[row * columns + column] = d[0], c[row * columns + column + 1] = d[1];
    c[(row + 8) * columns + column] = d[2], c[(row + 8) * columns + column + 1] = d[3];
}
