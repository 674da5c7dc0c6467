// A box begins before the tensor in both dimensions.
//@ arch sm_90a
//@ launch kernel grid 1 block 128
//@ arg x f32[1024] input constant 3
//@ arg y f32[1024] output
//@ map mx x 32,32 box 32,32
//@ expect y = corner_padded(x, 32, 4)
#include "../bulk.cuh"
#include "../warpgroup.cuh"
extern "C" __global__ void kernel(const float* x, float* y, MAP mx) {
    __shared__ __align__(128) float s[1024];
    BARRIER(bar);
    if (threadIdx.x == 0) {
        EXPECT(bar, 4096);
        LOAD_BOX(s, mx, -4, -4, bar);
    }
    WAIT(bar, 0);
    for (int i = threadIdx.x; i < 1024; i += 128) y[i] = s[i];
}
