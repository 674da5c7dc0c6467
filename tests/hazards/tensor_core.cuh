// Tensor memory and products of tcgen05, for kernels of sm_100a, behind bulk.cuh and warpgroup.cuh. Macros, so
// that a hazard is found on the kernel's own line. The first 128 threads
// of a block store the tiles.

// A tile of 128 rows and one of 16, each of 64 halves, with a swizzle of 128 bytes.
#define T_TILES(a, b)                                                       \
    TILE(sa, 8192);                                                         \
    TILE(sb, 1024);                                                         \
    for (int i = threadIdx.x; threadIdx.x < 128 && i < 1024; i += 128) {    \
        ((uint4*)sa)[i ^ (i / 8 % 8)] = ((const uint4*)a)[i];               \
        if (i < 128) ((uint4*)sb)[i ^ (i / 8 % 8)] = ((const uint4*)b)[i];  \
    }

// A descriptor of such a tile; other offsets and swizzles: 0 none, 2 of 128, 4 of 64, 6 of 32 bytes.
__device__ __forceinline__ u64 t_descriptor(const void* p, u64 leading = 16, u64 stride = 1024, u64 swizzle = 2) {
    u64 at = (u32)__cvta_generic_to_shared(p) & 0x3ffff;
    return at >> 4 | leading >> 4 << 16 | stride >> 4 << 32 | 1ull << 46 | swizzle << 61;
}

// An instruction descriptor of halves with sums in single precision.
#define T_FORM(m, n) (1u << 4 | (n) / 8 << 17 | (m) / 16 << 24)

#define T_ALLOC(slot, columns)                                                                        \
    if (threadIdx.x < 32)                                                                             \
    asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], %1;" ::"r"(ADDRESS(&slot)), \
                 "r"(columns) : "memory")
#define T_FREE(at, columns)                                                                                       \
    if (threadIdx.x < 32)                                                                                         \
    asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, %1;" ::"r"(at), "r"(columns) : "memory")
#define T_RELINQUISH() asm volatile("tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;" ::: "memory")
#define T_BEFORE() asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory")
#define T_AFTER() asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory")
#define T_SYNC() \
    T_BEFORE();  \
    __syncthreads(); \
    T_AFTER()

// One step along K, by one thread.
#define T_MMA(kind, d, a, b, form, adds)                                                                      \
    asm volatile("{\n .reg .pred p;\n setp.ne.b32 p, %4, 0;\n tcgen05.mma.cta_group::1.kind::" kind           \
                 " [%0], %1, %2, %3, p;\n}" ::"r"(d), "l"(a), "l"(b), "r"(form), "r"((int)(adds)) : "memory")
// The same with A in tensor memory.
#define T_MMA_TS(kind, d, a, b, form, adds)                                                                   \
    asm volatile("{\n .reg .pred p;\n setp.ne.b32 p, %4, 0;\n tcgen05.mma.cta_group::1.kind::" kind           \
                 " [%0], [%1], %2, %3, p;\n}" ::"r"(d), "r"(a), "l"(b), "r"(form), "r"((int)(adds)) : "memory")
// All four steps of two tiles.
#define T_PRODUCT(d, sa, sb, adds)     \
    for (int k = 0; k < 4; ++k)        \
    T_MMA("f16", d, t_descriptor(sa + 16 * k), t_descriptor(sb + 16 * k), T_FORM(128, 16), k || (adds))
#define T_COMMIT(bar)                                                                               \
    asm volatile("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];" ::"r"( \
                     ADDRESS(&bar)) : "memory")

// Eight registers of a thread: its lane, and columns from an address on.
#define T_LOAD(r, at)                                                                                          \
    asm volatile("tcgen05.ld.sync.aligned.32x32b.x8.b32 {%0, %1, %2, %3, %4, %5, %6, %7}, [%8];"               \
                 : "=r"((r)[0]), "=r"((r)[1]), "=r"((r)[2]), "=r"((r)[3]), "=r"((r)[4]), "=r"((r)[5]),         \
                   "=r"((r)[6]), "=r"((r)[7]) : "r"((at) + (threadIdx.x / 32 % 4 * 32 << 16)))
#define T_STORE(r, at)                                                                                         \
    asm volatile("tcgen05.st.sync.aligned.32x32b.x8.b32 [%8], {%0, %1, %2, %3, %4, %5, %6, %7};" ::"r"((r)[0]), \
                 "r"((r)[1]), "r"((r)[2]), "r"((r)[3]), "r"((r)[4]), "r"((r)[5]), "r"((r)[6]), "r"((r)[7]),    \
                 "r"((at) + (threadIdx.x / 32 % 4 * 32 << 16)) : "memory")
#define T_WAIT_LD() asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory")
#define T_WAIT_ST() asm volatile("tcgen05.wait::st.sync.aligned;" ::: "memory")
// Stores 16 columns of a thread's lane.
#define T_RESULT(c, d)                                                                        \
    for (int half = 0; half < 2; ++half) {                                                    \
        u32 r[8];                                                                             \
        T_LOAD(r, d + 8 * half);                                                              \
        T_WAIT_LD();                                                                          \
        for (int i = 0; i < 8; ++i) (c)[threadIdx.x * 16 + 8 * half + i] = __uint_as_float(r[i]); \
    }

// Tiles of other numbers of rows, in the same layout.
#define T_TILE_OF(tile, from, rows)                                                  \
    TILE(tile, 64 * (rows));                                                         \
    for (int i = threadIdx.x; threadIdx.x < 128 && i < 8 * (rows); i += 128)         \
    ((uint4*)tile)[i ^ (i / 8 % 8)] = ((const uint4*)from)[i]
// One step of a weight-stationary product of halves, with a buffer of B and a mask of its columns.
#define T_MMA_WS(usage, d, a, b, form, adds, mask)                                                                \
    asm volatile("{\n .reg .pred p;\n setp.ne.b32 p, %4, 0;\n tcgen05.mma.ws.cta_group::1.kind::f16" usage        \
                 " [%0], %1, %2, %3, p, %5;\n}" ::"r"(d), "l"(a), "l"(b), "r"(form), "r"((int)(adds)), "l"(mask) \
                 : "memory")
// All four steps, without a mask.
#define T_PRODUCT_WS(d, sa, sb, form, mask) \
    for (int k = 0; k < 4; ++k)             \
    T_MMA_WS("", d, t_descriptor(sa + 16 * k), t_descriptor(sb + 16 * k), form, k, (u64)(mask))
// Rows of tensor memory that move by a lane: 32 of them, or those of A behind a product.
#define T_SHIFT(at) asm volatile("tcgen05.shift.cta_group::1.down [%0];" ::"r"(at) : "memory")
#define T_MMA_ASHIFT(d, a, b, form, adds)                                                                          \
    asm volatile("{\n .reg .pred p;\n setp.ne.b32 p, %4, 0;\n tcgen05.mma.cta_group::1.kind::f16.ashift"           \
                 " [%0], [%1], %2, %3, {%5, %5, %5, %5}, p;\n}" ::"r"(d), "r"(a), "l"(b), "r"(form),               \
                 "r"((int)(adds)), "r"(0) : "memory")
// A to tensor memory, by 128 threads.
#define T_STORE_A(at, a)                                                                      \
    for (int k = 0; k < 4; ++k) {                                                             \
        u32 r[8];                                                                             \
        for (int i = 0; i < 8; ++i) r[i] = ((const u32*)a)[threadIdx.x * 32 + 8 * k + i];     \
        T_STORE(r, (at) + 8 * k);                                                             \
    }
