// The next rows are gathered while the last ones are still scattered.
//@ verdict race
//@ arch sm_100a
//@ launch kernel grid 1 block 64
//@ arg x f32[1024] input arange
//@ arg y f32[1024] output
//@ map mx x 64,16 box 32,1
//@ map my y 64,16 box 32,1
#include "../bulk.cuh"
#include "../warpgroup.cuh"
extern "C" __global__ void kernel(const float* x, float* y, MAP mx, MAP my) {
    __shared__ __align__(128) float s[128];
    BARRIER(bar);
    for (int part = 0; part < 4; ++part) {
        if (threadIdx.x == 0) {
            EXPECT(bar, 512);
            GATHER(s, mx, 0, part, part + 8, part + 4, part + 12, bar); // HAZARD
        }
        WAIT_FOR(bar, part & 1);
        if (threadIdx.x == 0) {
            SCATTER(s, my, 0, part, part + 8, part + 4, part + 12); // CONFLICT
            STORE_COMMIT();
        }
        __syncthreads();
    }
    STORE_WAIT();
}
