// Products of floats of a byte or less, with and without scales for blocks along K. Compiled by NVRTC 13.0.88 with
// --gpu-architecture=sm_120a -default-device --std=c++17. Takes n words of input and of output as the other kernels
// here; each warp computes the same.

#define REGISTERS "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3}"
#define OPERANDS "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1])
#define SCALED(FORM, BYTE_A, THREAD_A, BYTE_B, THREAD_B) \
    asm volatile("mma.sync.aligned." FORM " " REGISTERS ", {%10}, {%11, %12}, {%13}, {%14, %15};" : OPERANDS, \
                 "r"(scale_a), "h"(BYTE_A), "h"(THREAD_A), "r"(scale_b), "h"(BYTE_B), "h"(THREAD_B))
#define PLAIN(FORM) asm volatile("mma.sync.aligned." FORM " " REGISTERS ";" : OPERANDS)
#define STORE(AT) for (int i = 0; i < 4; i++) { out[(AT) * 128 + 4 * lane + i] = d[i]; d[i] = 0; }

extern "C" __global__ void scaled(const unsigned* in, float* out, int n) {
    typedef unsigned short half;
    int lane = threadIdx.x % 32;
    unsigned a[4], b[2];
    float d[4] = {};
    // Scales near one, so that no product overflows.
    unsigned scale_a = in[lane + 192] & 0x07070707 | 0x78787878, scale_b = in[lane + 224] & 0x03030303 | 0x7c7c7c7c;
    for (int i = 0; i < 4; i++) a[i] = in[4 * lane + i];
    for (int i = 0; i < 2; i++) b[i] = in[128 + 2 * lane + i];
    half zero = 0, one = 1, two = 2, three = 3, free = n % 3;
    PLAIN("m16n8k32.row.col.kind::f8f6f4.f32.e3m2.e2m3.f32"); STORE(0)
    PLAIN("m16n8k32.row.col.kind::f8f6f4.f32.e2m1.e3m2.f32"); STORE(1)
    SCALED("m16n8k32.row.col.kind::mxf8f6f4.block_scale.scale_vec::1X.f32.e2m3.e2m1.f32.ue8m0", two, one, zero, three);
    STORE(2)
    SCALED("m16n8k32.row.col.kind::mxf8f6f4.block_scale.f32.e2m1.e3m2.f32.ue8m0", free, one, three, free);
    STORE(3)
    SCALED("m16n8k64.row.col.kind::mxf4.block_scale.scale_vec::2X.f32.e2m1.e2m1.f32.ue8m0", two, zero, zero, one);
    STORE(4)
    SCALED("m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::2X.f32.e2m1.e2m1.f32.ue8m0", zero, one, two, two);
    STORE(5)
    // Rows of elements of 4 and 6 bits, whose padding nothing writes.
    __shared__ __align__(16) unsigned rows[128];
    for (int i = 0; i < 3; i++) rows[4 * lane + i] = in[256 + 3 * lane + i];
    __syncwarp();
    unsigned from = (unsigned)__cvta_generic_to_shared(&rows[4 * lane]), four[4], six[2];
    asm volatile("ldmatrix.sync.aligned.m8n16.x4.shared.b8x16.b4x16_p64 {%0, %1, %2, %3}, [%4];"
                 : "=r"(four[0]), "=r"(four[1]), "=r"(four[2]), "=r"(four[3]) : "r"(from));
    asm volatile("ldmatrix.sync.aligned.m8n16.x2.shared.b8x16.b6x16_p32 {%0, %1}, [%2];"
                 : "=r"(six[0]), "=r"(six[1]) : "r"(from));
    for (int i = 0; i < 4; i++) a[i] = four[i] << 2;
    for (int i = 0; i < 2; i++) b[i] = six[i];
    PLAIN("m16n8k32.row.col.kind::f8f6f4.f32.e2m1.e3m2.f32"); STORE(7)
    scale_a &= 0x7f7f7f7f, scale_b = scale_b & 0x3f3f3f3f;
    SCALED("m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3", zero, one, zero, three);
    STORE(6)
}
