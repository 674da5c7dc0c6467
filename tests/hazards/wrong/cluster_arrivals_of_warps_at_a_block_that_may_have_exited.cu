// Whole warps arrive at the other block, behind its own arrivals, and it waits for no phase.
//@ verdict race
//@ arch sm_90
//@ launch kernel grid 2 block 64
//@ arg x i32[128] input arange
//@ arg y i32[128] output
#include "../cluster.cuh"
extern "C" __global__ void __cluster_dims__(2, 1, 1) kernel(const int* x, int* y) {
    __shared__ __align__(8) u64 done;
    int t = threadIdx.x;
    if (t == 0) {
        INIT(&done, 128);
        FENCE_INIT();
    }
    CLUSTER_SYNC();
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(SHARED(&done)) : "memory");
    y[blockIdx.x * 64 + t] = x[blockIdx.x * 64 + t];
    ARRIVE_PEER(&done, cluster_rank() ^ 1); // HAZARD
} // CONFLICT
