// Once the thread that stored in bulk has waited, a barrier lets the block read the destination.
//@ arch sm_90
//@ launch kernel grid 1 block 64
//@ arg x f32[64] input arange
//@ arg t f32[64] scratch
//@ arg y f32[64] output
//@ expect y = copy(x)
#include "../bulk.cuh"
extern "C" __global__ void kernel(const float* x, float* t, float* y) {
    __shared__ __align__(16) float s[64];
    s[threadIdx.x] = x[threadIdx.x];
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (threadIdx.x == 0) {
        asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 256;" ::"l"(t), "r"(ADDRESS(s)) : "memory");
        asm volatile("cp.async.bulk.commit_group;" ::: "memory");
        asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
    }
    __syncthreads();
    y[threadIdx.x] = t[threadIdx.x];
}
