// A product of bytes with sums in integers.
//@ arch sm_100a
//@ launch kernel grid 1 block 128
//@ arg a f16[8192] input mod 7
//@ arg b f16[1024] input mod 5
//@ arg c f32[2048] output
//@ expect c = gemm_nt(a, b, 128, 16, 64)
#include "../bulk.cuh"
#include "../warpgroup.cuh"
#include "../tensor_core.cuh"
extern "C" __global__ void kernel(const u16* a, const u16* b, float* c) {
    auto code = [](u16 half) -> unsigned char {
        float value = __uint_as_float(half ? (((u32)half & 0x7fff) << 13) + (112u << 23) : 0u);
        return (unsigned char)value;
    };
    __shared__ __align__(1024) unsigned char sa[8192], sb[1024];
    for (int i = threadIdx.x; i < 8192; i += 128) {
        int row = i / 64, k = i % 64;
        int at = row * 64 + ((k / 16 ^ row / 2 % 4) * 16 + k % 16);
        sa[at] = code(a[i]);
        if (i < 1024) sb[at] = code(b[i]);
    }
    __shared__ u32 slot;
    T_ALLOC(slot, 32);
    FENCE_ASYNC();
    BARRIER(bar);
    T_AFTER();
    u32 d = slot;
    if (threadIdx.x == 0) {
        u32 form = 2u << 4 | 1u << 7 | 1u << 10 | 16 / 8 << 17 | 128 / 16 << 24;
        for (int k = 0; k < 2; ++k)
            T_MMA("i8", d, t_descriptor(sa + 32 * k, 16, 512, 4), t_descriptor(sb + 32 * k, 16, 512, 4), form, k);
        T_COMMIT(bar);
    }
    WAIT(bar, 0);
    T_AFTER();
    for (int half = 0; half < 2; ++half) {
        u32 r[8];
        T_LOAD(r, d + 8 * half);
        T_WAIT_LD();
        for (int i = 0; i < 8; ++i) c[threadIdx.x * 16 + 8 * half + i] = (float)(int)r[i];
    }
    T_SYNC();
    T_FREE(d, 32);
}
