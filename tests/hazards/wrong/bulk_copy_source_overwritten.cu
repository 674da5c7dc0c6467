// The global source of a bulk copy is stored to before anybody has waited for the copy.
//@ verdict race
//@ arch sm_90
//@ launch kernel grid 1 block 64
//@ arg x f32[64] inout arange
//@ arg y f32[64] output
#include "../bulk.cuh"
extern "C" __global__ void kernel(float* x, float* y) {
    __shared__ __align__(16) float s[64];
    BARRIER(bar);
    if (threadIdx.x == 0) {
        EXPECT(bar, 256);
        COPY(s, x, 256, bar); // CONFLICT
    }
    __syncthreads();
    x[threadIdx.x] = 1; // HAZARD
    WAIT(bar, 0);
    y[threadIdx.x] = s[threadIdx.x];
}
