// Only its own block can wait for an mbarrier.
//@ verdict crashed
//@ arch sm_90
//@ launch kernel grid 2 block 64
//@ arg x i32[128] input arange
//@ arg y i32[128] output
#include "../cluster.cuh"
extern "C" __global__ void __cluster_dims__(2, 1, 1) kernel(const int* x, int* y) {
    __shared__ __align__(8) u64 full;
    if (threadIdx.x == 0) {
        INIT(&full, 64);
        FENCE_INIT();
    }
    CLUSTER_SYNC();
    unsigned other = peer(SHARED(&full), cluster_rank() ^ 1);
    asm volatile("{\n .reg .pred p;\n mbarrier.test_wait.parity.shared::cta.b64 p, [%0], 0;\n}" ::"r"(other) : "memory"); // HAZARD
    y[blockIdx.x * 64 + threadIdx.x] = x[blockIdx.x * 64 + threadIdx.x];
}
