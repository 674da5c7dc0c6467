// An arrival that its block has waited for cannot come after the exit of that block, whatever its scope.
//@ arch sm_90
//@ launch kernel grid 2 block 64
//@ arg x i32[128] input arange
//@ arg y i32[128] output
//@ expect y = copy(x)
#include "../cluster.cuh"
extern "C" __global__ void __cluster_dims__(2, 1, 1) kernel(const int* x, int* y) {
    __shared__ __align__(8) u64 full;
    int t = threadIdx.x;
    if (t == 0) {
        INIT(&full, 1);
        FENCE_INIT();
    }
    CLUSTER_SYNC();
    y[blockIdx.x * 64 + t] = x[blockIdx.x * 64 + t];
    if (cluster_rank() == 1) {
        if (t == 32)
            asm volatile("mbarrier.arrive.release.cta.shared::cluster.b64 _, [%0];" ::"r"(peer(SHARED(&full), 0)) : "memory");
    } else if (t == 0)
        WAIT_BLOCK(&full, 0);
}
