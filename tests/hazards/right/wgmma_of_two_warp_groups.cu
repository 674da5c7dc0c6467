// Two warp-groups share the box of B; each has its own rows of A.
//@ arch sm_90a
//@ launch kernel grid 1 block 256
//@ arg a f16[8192] input mod 7
//@ arg b f16[512] input mod 5
//@ arg c f32[1024] output
//@ map ma a 64,128 box 64,64 swizzle 128
//@ map mb b 64,8 box 64,8 swizzle 128
//@ expect c = gemm_nt(a, b, 128, 8, 64)
#include "../bulk.cuh"
#include "../warpgroup.cuh"
extern "C" __global__ void kernel(const u16* a, const u16* b, float* c, MAP ma, MAP mb) {
    TILE(sa, 8192);
    TILE(sb, 512);
    BARRIER(bar);
    if (threadIdx.x == 0) {
        EXPECT(bar, 17408);
        LOAD_BOX(sa, ma, 0, 0, bar);
        LOAD_BOX(sa + 4096, ma, 0, 64, bar);
        LOAD_BOX(sb, mb, 0, 0, bar);
    }
    WAIT(bar, 0);
    int group = threadIdx.x / 128;
    float d[4] = {0, 0, 0, 0};
    WG_FENCE();
    MMA_64(d, sa + group * 4096, sb);
    WG_COMMIT();
    WG_WAIT(0);
    store8(c + group * 512, d, 8);
}
