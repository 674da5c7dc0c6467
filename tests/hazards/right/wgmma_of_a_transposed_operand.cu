// B is stored along N.
//@ arch sm_90a
//@ launch kernel grid 1 block 128
//@ arg a f16[4096] input mod 7
//@ arg b f16[4096] input mod 5
//@ arg c f32[4096] output
//@ map ma a 64,64 box 64,64 swizzle 128
//@ map mb b 64,64 box 64,64 swizzle 128
//@ expect c = gemm(a, b, 64, 64, 64)
#include "../bulk.cuh"
#include "../warpgroup.cuh"
extern "C" __global__ void kernel(const u16* a, const u16* b, float* c, MAP ma, MAP mb) {
    TILE(sa, 4096);
    TILE(sb, 4096);
    BARRIER(bar);
    if (threadIdx.x == 0) {
        EXPECT(bar, 16384);
        LOAD_BOX(sa, ma, 0, 0, bar);
        LOAD_BOX(sb, mb, 0, 0, bar);
    }
    WAIT(bar, 0);
    float d[8][4] = {};
    WG_FENCE();
    for (int n = 0; n < 8; ++n)
        for (int k = 0; k < 4; ++k)
            asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1, %2, %3}, %4, %5, 1, 1, 1, 0, 1;"
                         : "+f"(d[n][0]), "+f"(d[n][1]), "+f"(d[n][2]), "+f"(d[n][3])
                         : "l"(descriptor(sa + 16 * k, 16, 1024, 1)), "l"(descriptor(sb + 8 * n + 1024 * k, 4096, 1024, 1)));
    WG_COMMIT();
    WG_WAIT(0);
    for (int n = 0; n < 8; ++n) store8(c + 8 * n, d[n], 64);
}
