// A box is larger than the rest of the array that it is copied to.
//@ verdict out_of_bounds
//@ also race uninitialized crashed
//@ arch sm_90a
//@ launch kernel grid 1 block 128
//@ arg a f16[4096] input mod 7
//@ arg b f16[512] input mod 5
//@ arg c f32[512] output
//@ map ma a 64,64 box 64,64 swizzle 128
//@ map mb b 64,8 box 64,8 swizzle 128
#include "../bulk.cuh"
#include "../warpgroup.cuh"
extern "C" __global__ void kernel(const u16* a, const u16* b, float* c, MAP ma, MAP mb) {
    TILE(sb, 512);
    TILE(sa, 4096);
    BARRIER(bar);
    if (threadIdx.x == 0) {
        EXPECT(bar, 9216);
        LOAD_BOX(sb, mb, 0, 0, bar);
        LOAD_BOX(sa + 512, ma, 0, 0, bar); // HAZARD
    }
    WAIT(bar, 0);
    float d[4] = {0, 0, 0, 0};
    WG_FENCE();
    MMA_64(d, sa, sb);
    WG_COMMIT();
    WG_WAIT(0);
    store8(c, d, 8);
}
