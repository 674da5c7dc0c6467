// A wait leaves the last product in flight, and the stage of the one before is freed.
//@ arch sm_90a
//@ launch kernel grid 1 block 256
//@ arg a f16[16384] input mod 7
//@ arg b f16[2048] input mod 5
//@ arg c f32[512] output
//@ map ma a 256,64 box 64,64 swizzle 128
//@ map mb b 256,8 box 64,8 swizzle 128
//@ expect c = gemm_nt(a, b, 64, 8, 256)
#include "../bulk.cuh"
#include "../warpgroup.cuh"
extern "C" __global__ void kernel(const u16* a, const u16* b, float* c, MAP ma, MAP mb) {
    TWO_STAGES();
    if (threadIdx.x == 0) {
        for (int step = 0; step < 4; ++step) {
            int s = step % 2;
            if (step >= 2) WAIT_FOR(empty[s], (step / 2 - 1) % 2);
            EXPECT(full[s], 9216);
            LOAD_BOX(sa[s], ma, step * 64, 0, full[s]);
            LOAD_BOX(sb[s], mb, step * 64, 0, full[s]);
        }
    } else if (threadIdx.x >= 128) {
        float d[4] = {0, 0, 0, 0};
        for (int step = 0; step < 4; ++step) {
            int s = step % 2;
            WAIT_FOR(full[s], step / 2 % 2);
            WG_FENCE();
            MMA_64(d, sa[s], sb[s]);
            WG_COMMIT();
            WG_WAIT(1);
            if (threadIdx.x == 128 && step) ARRIVE(empty[(step - 1) % 2]);
        }
        WG_WAIT(0);
        store8(c, d, 8);
    }
}
