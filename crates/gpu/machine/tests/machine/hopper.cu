// Products of a warp-group with a sparse A. nvcc 13.0 -ptx and -cubin of sm_90a.
typedef unsigned u32;
typedef unsigned long long u64;

__device__ u64 matrix(const void* tile, u64 leading, u64 stride) {
    return (u64)(u32)__cvta_generic_to_shared(tile) >> 4 | leading >> 4 << 16 | stride >> 4 << 32;
}
// Places 0 and 1, 0 and 3, 1 and 2, 2 and 3 of each chunk of four.
__device__ u32 places(u32 seed) {
    u32 all = 0;
    for (int chunk = 0; chunk < 8; ++chunk) all |= (0xe9c4u >> (seed >> chunk * 2 & 3) * 4 & 15) << chunk * 4;
    return all;
}
// Of elements of 32 bits, the first or the second of two.
__device__ u32 halves(u32 seed) {
    u32 all = 0;
    for (int chunk = 0; chunk < 8; ++chunk) all |= (seed >> chunk & 1 ? 0xeu : 0x4u) << chunk * 4;
    return all;
}

#define PRODUCT(shape, a, more)                                                                                            \
    {                                                                                                                      \
        u32 d[4] = {0, 0, 0, 0};                                                                                           \
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");                                                            \
        asm volatile("wgmma.mma_async.sp.sync.aligned." shape " {%0, %1, %2, %3}, " a ", %5, " more                        \
                     : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])                                                      \
                     : "l"(matrix(sa, 128, 256)), "l"(matrix(sb, 128, 512)), "r"(places(seed)), "r"(halves(seed)),         \
                       "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3]));                                                        \
        asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");                                                     \
        asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");                                                     \
        for (int i = 0; i < 4; ++i) out[number * 512 + t * 4 + i] = d[i];                                                  \
        ++number;                                                                                                          \
    }

extern "C" __global__ void sparse(const u32* in, u32* out, int n) {
    __shared__ __align__(1024) u32 sa[512], sb[256];
    const u32 t = threadIdx.x, seed = in[t];
    // No number is too large for a sum.
    for (int i = t; i < 512; i += 128) sa[i] = in[i] & 0xbfffbfff & 0x3f3f3f3f | 0x20002000;
    for (int i = t; i < 256; i += 128) sb[i] = in[512 + i] & 0x3f3f3f3f | 0x20002000;
    u32 r[4];
    for (int i = 0; i < 4; ++i) r[i] = in[1024 + 4 * t + i] & 0x3f3f3f3f;
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    int number = 0;
    PRODUCT("m64n8k32.f32.f16.f16", "%4", "%6, 0, 0, 1, 1, 0, 0;");
    PRODUCT("m64n8k32.f32.bf16.bf16", "{%8, %9, %10, %11}", "%6, 1, 1, -1, 1, 0;");
    PRODUCT("m64n8k16.f32.tf32.tf32", "%4", "%7, 1, 1, 1, 1;");
    PRODUCT("m64n8k64.f32.e4m3.e5m2", "%4", "%6, 0, 1, 1, -1;");
    PRODUCT("m64n8k64.s32.s8.u8", "{%8, %9, %10, %11}", "%6, 0, 1;");
    PRODUCT("m64n8k32.f32.f16.f16", "{%8, %9, %10, %11}", "%6, 1, 1, 1, 1, 1;");
}
