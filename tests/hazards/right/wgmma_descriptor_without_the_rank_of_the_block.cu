// Descriptors of a block with rank 1: the rank in the upper bits of its addresses is left out.
//@ arch sm_90a
//@ launch kernel grid 2 block 128
//@ arg a f16[4096] input mod 7
//@ arg b f16[512] input mod 5
//@ arg c f32[512] output
//@ map ma a 64,64 box 8,64
//@ map mb b 64,8 box 8,8
//@ expect c = gemm_nt(a, b, 64, 8, 64)
#include "../bulk.cuh"
#include "../warpgroup.cuh"
__device__ __forceinline__ u64 own_descriptor(const void* p, u64 leading, u64 stride, u64 swizzle) {
    u64 at = ADDRESS(p) & 0x3ffff;
    return at >> 4 | leading >> 4 << 16 | stride >> 4 << 32 | swizzle << 62;
}
extern "C" __global__ void __cluster_dims__(2, 1, 1) kernel(const u16* a, const u16* b, float* c, MAP ma, MAP mb) {
    TILE(sa, 4096);
    TILE(sb, 512);
    BARRIER(bar);
    if (threadIdx.x == 0) {
        EXPECT(bar, 9216);
        for (int i = 0; i < 8; ++i) {
            LOAD_BOX(sa + i * 512, ma, i * 8, 0, bar);
            LOAD_BOX(sb + i * 64, mb, i * 8, 0, bar);
        }
    }
    WAIT(bar, 0);
    float d[4] = {0, 0, 0, 0};
    WG_FENCE();
    for (int k = 0; k < 4; ++k)
        MMA(d, own_descriptor(sa + k * 1024, 1024, 128, 0), own_descriptor(sb + k * 128, 128, 128, 0), 1);
    WG_COMMIT();
    WG_WAIT(0);
    if (blockIdx.x == 1) store8(c, d, 8);
}
