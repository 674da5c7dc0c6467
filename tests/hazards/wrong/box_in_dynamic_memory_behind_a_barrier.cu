// A box is copied to the beginning of dynamic memory, which ptxas places 16 bytes behind the start: the barrier comes first.
//@ verdict misaligned
//@ also uninitialized
//@ arch sm_90
//@ launch kernel grid 1 block 32 shared 1024
//@ arg x f32[256] input arange
//@ arg y f32[256] output
//@ map m x 32,8 box 32,8 swizzle 128
//@ expect y = copy(x)
#include "../bulk.cuh"
#include "../warpgroup.cuh"
extern "C" __global__ void kernel(const float* x, float* y, MAP m) {
    extern __shared__ float tile[];
    BARRIER(bar);
    if (threadIdx.x == 0) {
        EXPECT(bar, 1024);
        LOAD_BOX(tile, m, 0, 0, bar); // HAZARD
    }
    WAIT(bar, 0);
    for (int i = threadIdx.x; i < 256; i += 32) y[i] = tile[(i / 32 * 8 + (i / 4 % 8 ^ i / 32)) * 4 + i % 4];
}
