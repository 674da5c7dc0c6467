// Bulk copies into shared memory and the barrier that they arrive at, for kernels that do something
// else wrong. These are macros so that a hazard is found on the kernel's own line.
#define ADDRESS(place) ((unsigned)__cvta_generic_to_shared(place))

// A barrier of one arrival that every thread of the block sees.
#define BARRIER(bar)                                                                                  \
    __shared__ __align__(8) unsigned long long bar;                                                   \
    if (threadIdx.x == 0) {                                                                           \
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(ADDRESS(&bar)) : "memory");       \
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");                            \
    }                                                                                                 \
    __syncthreads()

// Arrives, and makes the phase last until so many bytes have come.
#define EXPECT(bar, bytes) \
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], " #bytes ";" ::"r"(ADDRESS(&bar)) : "memory")

// Starts a copy that tells the barrier when it is done.
#define COPY(to, from, bytes, bar)                                                                               \
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], " #bytes ", [%2];" \
                 ::"r"(ADDRESS(to)), "l"(from), "r"(ADDRESS(&bar)) : "memory")

// Waits for the end of a phase of that parity.
#define WAIT(bar, parity)                                                                                      \
    asm volatile("{\n .reg .pred p;\nL: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], " #parity            \
                 ";\n @!p bra L;\n}" ::"r"(ADDRESS(&bar)) : "memory")

// Changes of a tensor map in shared memory (128 bytes) or in global memory, and their fences.
#define MAP_ADDRESS(map, to) \
    asm volatile("tensormap.replace.tile.global_address.b1024.b64 [%0], %1;" ::"l"(map), "l"(to) : "memory")
#define MAP_ROWS(map, rows) \
    asm volatile("tensormap.replace.tile.global_dim.b1024.b32 [%0], 1, %1;" ::"l"(map), "r"(rows) : "memory")
#define MAP_COPY(to, from)                                                                                            \
    asm volatile("tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%0], [%1], " \
                 "128;" ::"l"(to), "r"(ADDRESS(from)) : "memory")
#define MAP_RELEASE() asm volatile("fence.proxy.tensormap::generic.release.gpu;" ::: "memory")
#define MAP_ACQUIRE(map) asm volatile("fence.proxy.tensormap::generic.acquire.gpu [%0], 128;" ::"l"(map) : "memory")

// Zeros in shared memory.
#define CLEAR(at, bytes) asm volatile("st.bulk.weak.shared::cta [%0], %1, 0;" ::"r"(ADDRESS(at)), "l"((u64)(bytes)) : "memory")
