// Sparse products. nvcc 13.0 -ptx and -cubin of each architecture.
#define AT (blockIdx.x * blockDim.x + threadIdx.x)
#define WORD(n) in[(17 * AT + (n)) % 4096]
// Places 0 and 1, or 2 and 3, of each chunk: the metadata of elements of any size.
#define METADATA (0x44444444u | (WORD(12) & 0x11111111u) * 10u)
#define SHORT(name, form, mask, selector)                                                                              \
    extern "C" __global__ void name(const unsigned *in, unsigned *out, int) {                                          \
        unsigned d[4];                                                                                                 \
        asm volatile("mma.sp::ordered_metadata.sync.aligned." form                                                     \
                     " {%0, %1, %2, %3}, {%4, %5}, {%6, %7}, {%8, %9, %10, %11}, %12, " #selector ";"                  \
                     : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])                                                  \
                     : "r"(WORD(0) & mask), "r"(WORD(1) & mask), "r"(WORD(2) & mask), "r"(WORD(3) & mask),             \
                       "r"(WORD(4) & mask), "r"(WORD(5) & mask), "r"(WORD(6) & mask), "r"(WORD(7) & mask),             \
                       "r"(METADATA));                                                                                 \
        for (int n = 0; n < 4; n++) out[4 * AT + n] = d[n];                                                            \
    }
#define LONG(name, form, mask, selector)                                                                               \
    extern "C" __global__ void name(const unsigned *in, unsigned *out, int) {                                          \
        unsigned d[4];                                                                                                 \
        asm volatile("mma.sp::ordered_metadata.sync.aligned." form                                                     \
                     " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9, %10, %11}, {%12, %13, %14, %15}, %16, " #selector  \
                     ";"                                                                                               \
                     : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])                                                  \
                     : "r"(WORD(0) & mask), "r"(WORD(1) & mask), "r"(WORD(2) & mask), "r"(WORD(3) & mask),             \
                       "r"(WORD(4) & mask), "r"(WORD(5) & mask), "r"(WORD(6) & mask), "r"(WORD(7) & mask),             \
                       "r"(WORD(8) & mask), "r"(WORD(9) & mask), "r"(WORD(10) & mask), "r"(WORD(11) & mask),           \
                       "r"(METADATA));                                                                                 \
        for (int n = 0; n < 4; n++) out[4 * AT + n] = d[n];                                                            \
    }
SHORT(halves16, "m16n8k16.row.col.f32.f16.f16.f32", 0x3fff3fffu, 3)
LONG(halves32, "m16n8k32.row.col.f32.f16.f16.f32", 0x3fff3fffu, 1)
LONG(brains32, "m16n8k32.row.col.f32.bf16.bf16.f32", 0x3fff3fffu, 0)
LONG(singles16, "m16n8k16.row.col.f32.tf32.tf32.f32", 0x3fffffffu, 1)
SHORT(bytes32, "m16n8k32.row.col.s32.s8.u8.s32", ~0u, 1)
LONG(bytes64, "m16n8k64.row.col.satfinite.s32.u8.s8.s32", ~0u, 0)
SHORT(nibbles64, "m16n8k64.row.col.s32.s4.u4.s32", ~0u, 1)
LONG(nibbles128, "m16n8k128.row.col.s32.u4.s4.s32", ~0u, 0)
#if __CUDA_ARCH__ >= 890 && __CUDA_ARCH__ != 900
LONG(floats64, "m16n8k64.row.col.f32.e4m3.e5m2.f32", 0x37373737u, 0)
#endif
