// Boxes are copied in, doubled and copied out.
//@ arch sm_90a
//@ launch kernel grid 1 block 128
//@ arg x f32[2048] input arange
//@ arg y f32[2048] output
//@ map mx x 64,32 box 32,32
//@ map my y 64,32 box 32,32
//@ expect y = scale(x, 2)
#include "../bulk.cuh"
#include "../warpgroup.cuh"
extern "C" __global__ void kernel(const float* x, float* y, MAP mx, MAP my) {
    __shared__ __align__(128) float s[1024];
    BARRIER(bar);
    for (int half = 0; half < 2; ++half) {
        if (threadIdx.x == 0) {
            EXPECT(bar, 4096);
            LOAD_BOX(s, mx, half * 32, 0, bar);
        }
        WAIT_FOR(bar, half);
        for (int i = threadIdx.x; i < 1024; i += 128) s[i] *= 2;
        FENCE_ASYNC();
        __syncthreads();
        if (threadIdx.x == 0) {
            STORE_BOX(s, my, half * 32, 0);
            STORE_COMMIT();
            STORE_WAIT();
        }
        __syncthreads();
    }
}
