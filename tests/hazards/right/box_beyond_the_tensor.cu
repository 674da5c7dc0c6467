// What a box has outside the tensor is zero, and is not stored.
//@ arch sm_90a
//@ launch kernel grid 1 block 128
//@ arg x f32[768] input constant 3
//@ arg y f32[1024] output
//@ arg z f32[768] output
//@ map mx x 24,32 box 32,32
//@ map mz z 24,32 box 32,32
//@ expect y = padded_rows(x, 24, 32)
#include "../bulk.cuh"
#include "../warpgroup.cuh"
extern "C" __global__ void kernel(const float* x, float* y, float* z, MAP mx, MAP mz) {
    __shared__ __align__(128) float s[1024];
    BARRIER(bar);
    if (threadIdx.x == 0) {
        EXPECT(bar, 4096);
        LOAD_BOX(s, mx, 0, 0, bar);
    }
    WAIT(bar, 0);
    for (int i = threadIdx.x; i < 1024; i += 128) y[i] = s[i];
    __syncthreads();
    if (threadIdx.x == 0) {
        STORE_BOX(s, mz, 0, 0);
        STORE_COMMIT();
        STORE_WAIT();
    }
}
