// Boxes of both operands, with a swizzle of 32 bytes.
//@ arch sm_90a
//@ launch kernel grid 1 block 128
//@ arg a f16[4096] input mod 7
//@ arg b f16[512] input mod 5
//@ arg c f32[512] output
//@ map ma a 64,64 box 16,64 swizzle 32
//@ map mb b 64,8 box 16,8 swizzle 32
//@ expect c = gemm_nt(a, b, 64, 8, 64)
#include "../bulk.cuh"
#include "../warpgroup.cuh"
extern "C" __global__ void kernel(const u16* a, const u16* b, float* c, MAP ma, MAP mb) {
    TILE(sa, 4096);
    TILE(sb, 512);
    BARRIER(bar);
    if (threadIdx.x == 0) {
        EXPECT(bar, 9216);
        for (int i = 0; i < 4; ++i) {
            LOAD_BOX(sa + i * 1024, ma, i * 16, 0, bar);
            LOAD_BOX(sb + i * 128, mb, i * 16, 0, bar);
        }
    }
    WAIT(bar, 0);
    float d[4] = {0, 0, 0, 0};
    WG_FENCE();
    for (int k = 0; k < 4; ++k) {
        int box = k * 16 / 16, in = k * 16 % 16;
        MMA(d, descriptor(sa + box * 1024 + in, 16, 256, 3), descriptor(sb + box * 128 + in, 16, 256, 3), 1);
    }
    WG_COMMIT();
    WG_WAIT(0);
    store8(c, d, 8);
}
