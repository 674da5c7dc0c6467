// A bulk copy reads global memory that ordinary stores of the same launch wrote.
//@ verdict race
//@ arch sm_90
//@ launch kernel grid 1 block 64
//@ arg x f32[64] input arange
//@ arg t f32[64] scratch
//@ arg y f32[64] output
#include "../bulk.cuh"
extern "C" __global__ void kernel(const float* x, float* t, float* y) {
    __shared__ __align__(16) float s[64];
    t[threadIdx.x] = x[threadIdx.x] + 1; // CONFLICT
    BARRIER(bar);
    if (threadIdx.x == 0) {
        EXPECT(bar, 256);
        COPY(s, t, 256, bar); // HAZARD
    }
    __syncthreads();
    WAIT(bar, 0);
    y[threadIdx.x] = s[threadIdx.x];
}
