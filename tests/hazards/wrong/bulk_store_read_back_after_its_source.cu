// `wait_group.read` says that the source was read, not that the destination is written.
//@ verdict race
//@ arch sm_90
//@ launch kernel grid 1 block 64
//@ arg x f32[64] input arange
//@ arg y f32[64] output
//@ arg z f32[64] output
#include "../bulk.cuh"
extern "C" __global__ void kernel(const float* x, float* y, float* z) {
    __shared__ __align__(16) float s[64];
    s[threadIdx.x] = x[threadIdx.x];
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (threadIdx.x == 0) {
        asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 256;" ::"l"(y), "r"(ADDRESS(s)) : "memory"); // HAZARD
        asm volatile("cp.async.bulk.commit_group;" ::: "memory");
        asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
    }
    __syncthreads();
    z[threadIdx.x] = y[63 - threadIdx.x]; // CONFLICT
}
