// Rows of a matrix are gathered by their numbers and scattered in another order.
//@ arch sm_100a
//@ launch kernel grid 1 block 64
//@ arg x f32[1024] input arange
//@ arg y f32[1024] output
//@ map mx x 64,16 box 32,1
//@ map my y 64,16 box 32,1
//@ expect y = scale(x, 1)
#include "../bulk.cuh"
#include "../warpgroup.cuh"
extern "C" __global__ void kernel(const float* x, float* y, MAP mx, MAP my) {
    __shared__ __align__(128) float s[128];
    BARRIER(bar);
    for (int part = 0; part < 8; ++part) {
        int column = part % 2 * 32, first = part / 2;
        if (threadIdx.x == 0) {
            EXPECT(bar, 512);
            GATHER(s, mx, column, first, first + 8, first + 4, first + 12, bar);
        }
        WAIT_FOR(bar, part & 1);
        if (threadIdx.x == 0) {
            SCATTER(s, my, column, first, first + 8, first + 4, first + 12);
            STORE_COMMIT();
            STORE_WAIT();
        }
        __syncthreads();
    }
}
