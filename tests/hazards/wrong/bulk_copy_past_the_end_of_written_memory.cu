// A bulk copy reads beyond the end of a buffer that the kernel itself has written.
//@ verdict out_of_bounds
//@ arch sm_90a
//@ launch kernel grid 1 block 128
//@ arg data f32[1024] scratch
//@ arg y f32[128] output
#include "../bulk.cuh"
#include "../warpgroup.cuh"
extern "C" __global__ void kernel(float* data, float* y) {
    __shared__ __align__(128) float s[8];
    BARRIER(bar);
    for (int i = threadIdx.x; i < 1024; i += 128) data[i] = i;
    asm volatile("fence.proxy.async;" ::: "memory");
    __syncthreads();
    if (threadIdx.x == 0) {
        EXPECT(bar, 32);
        COPY(s, data + 1020, 32, bar); // HAZARD
    }
    WAIT(bar, 0);
    y[threadIdx.x] = s[threadIdx.x % 4];
}
