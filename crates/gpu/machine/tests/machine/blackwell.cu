// Weight-stationary products, shifts of rows of tensor memory and zeros of shared memory. nvcc 13.0 -ptx and -cubin of sm_100a.
typedef unsigned u32;
typedef unsigned long long u64;

__device__ u32 at(const void* place) { return (u32)__cvta_generic_to_shared(place); }
__device__ u64 matrix(const u32* tile) { return (u64)(at(tile) & 0x3ffff) >> 4 | 8ull << 16 | 16ull << 32 | 1ull << 46; }

#define PRODUCT(name, d, a, b, form, adds, more)                                                    \
    asm volatile("{\n .reg .pred p;\n setp.ne.b32 p, %4, 0;\n " name " [%0], " a ", %2, %3, " more "\n}" \
                 ::"r"(d), "l"(left), "l"(b), "r"(form), "r"(adds), "r"(rows), "l"(mask), "r"(0) : "memory")

extern "C" __global__ void products(const u32* in, u32* out, int n) {
    // Rows of 16 halves: core matrices of eight rows of 16 bytes.
    __shared__ __align__(1024) u32 sa[1024], sb[1024];
    __shared__ __align__(16) u32 cleared[256];
    __shared__ __align__(8) u64 barrier;
    __shared__ u32 slot;
    const u32 t = threadIdx.x;
    for (int i = t; i < 1024; i += 128) {
        // Halves between 1 and 2.
        sa[i] = in[i] & 0x03ff03ff | 0x3c003c00;
        sb[i] = in[1024 + i] & 0x03ff03ff | 0x3c003c00;
    }
    for (int i = t; i < 256; i += 128) cleared[i] = in[i];
    if (t < 32) asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], 512;" ::"r"(at(&slot)) : "memory");
    if (t == 0) {
        asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(at(&barrier)) : "memory");
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    const u32 d = slot, rows = slot + 448;
    for (int k = 0; k < 2; ++k) {
        u32 r[8];
        for (int i = 0; i < 8; ++i) r[i] = in[t * 16 + 8 * k + i] & 0x03ff03ff | 0x3c003c00;
        asm volatile("tcgen05.st.sync.aligned.32x32b.x8.b32 [%8], {%0, %1, %2, %3, %4, %5, %6, %7};" ::"r"(r[0]), "r"(r[1]), "r"(r[2]),
                     "r"(r[3]), "r"(r[4]), "r"(r[5]), "r"(r[6]), "r"(r[7]), "r"(rows + 8 * k + (t / 32 * 32 << 16)) : "memory");
    }
    asm volatile("tcgen05.wait::st.sync.aligned;" ::: "memory");
    __syncthreads();
    if (t == 0) {
        asm volatile("st.bulk.weak.shared::cta [%0], %1, 0;" ::"r"(at(cleared + 64)), "l"((u64)n / 2 * 2 / 8 * 8 / 2 + 12) : "memory");
        const u64 left = matrix(sa), right = matrix(sb);
        const u64 mask = 1ull << 39 | 2ull << 40 | 3ull << 48 | 1ull << 56 | (1 | 2 << 8 | 3 << 16) | 5ull << 32;
        const u32 form = 1u << 4 | 64 / 8 << 17, plain = 1u << 4 | 32 / 8 << 17 | 128 / 16 << 24;
        PRODUCT("tcgen05.mma.ws.cta_group::1.kind::f16", d, "%1", right, form | 128 / 16 << 24, 0, "p;");
        PRODUCT("tcgen05.mma.ws.cta_group::1.kind::f16.collector::b1::fill", d + 64, "%1", right, form | 64 / 16 << 24, 0, "p, %6;");
        PRODUCT("tcgen05.mma.ws.cta_group::1.kind::f16.collector::b1::lastuse", d + 96, "%1", right, form | 32 / 16 << 24, 0, "p, %6;");
        PRODUCT("tcgen05.mma.ws.cta_group::1.kind::f16", d + 112, "[%5]", right, form | 128 / 16 << 24, 0, "p, %6;");
        PRODUCT("tcgen05.mma.cta_group::1.kind::f16.ashift", d + 176, "[%5]", right, plain, 0, "{%7, %7, %7, %7}, p;");
        PRODUCT("tcgen05.mma.cta_group::1.kind::f16", d + 208, "[%5]", right, plain, 0, "p;");
        asm volatile("tcgen05.shift.cta_group::1.down [%0];" ::"r"(rows + 8) : "memory");
        asm volatile("tcgen05.shift.cta_group::1.down [%0];" ::"r"(rows + (64 << 16)) : "memory");
        asm volatile("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];" ::"r"(at(&barrier)) : "memory");
    }
    asm volatile("{\n .reg .pred p;\nL: mbarrier.try_wait.parity.shared.b64 p, [%0], 0;\n @!p bra L;\n}" ::"r"(at(&barrier)) : "memory");
    asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
    u32 sum = 0;
    for (int column = 0; column < 464; column += 8) {
        if (column >= 240 && column < 448) continue;
        u32 r[8];
        asm volatile("tcgen05.ld.sync.aligned.32x32b.x8.b32 {%0, %1, %2, %3, %4, %5, %6, %7}, [%8];" : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]),
                     "=r"(r[3]), "=r"(r[4]), "=r"(r[5]), "=r"(r[6]), "=r"(r[7]) : "r"(d + column + (t / 32 * 32 << 16)));
        asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory");
        for (int i = 0; i < 8; ++i) sum = (sum ^ r[i]) * 0x9e3779b1u + (sum >> 15);
        if (column >= 448 || column < 16) {
            for (int i = 0; i < 8; ++i) out[1024 + (column & 15) * 128 + t * 8 + i] = r[i];
        }
        out[t * 4 + column / 128] = sum;
    }
    for (int i = t; i < 256; i += 128) out[512 + i] = cleared[i];
    __syncthreads();
    if (t < 32) asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, 512;" ::"r"(d) : "memory");
}
