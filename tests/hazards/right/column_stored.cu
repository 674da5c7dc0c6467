// A column of pixels is stored from shared memory, over the end of an image.
//@ arch sm_90a
//@ launch kernel grid 1 block 64
//@ arg y f32[320] output
//@ map my y 8,5,4,2 box 8,40 lower 0,0 upper 0,0
//@ expect y = constant(3, 320)
#include "../bulk.cuh"
#include "../warpgroup.cuh"
extern "C" __global__ void kernel(float* y, MAP my) {
    __shared__ __align__(128) float s[320];
    for (int i = threadIdx.x; i < 320; i += 64) s[i] = 3;
    FENCE_ASYNC();
    __syncthreads();
    if (threadIdx.x == 0) {
        STORE_COLUMN(s, my, 0, 0, 0);
        STORE_COMMIT();
        STORE_WAIT();
    }
}
