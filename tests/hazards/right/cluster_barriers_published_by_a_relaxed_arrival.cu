// `fence.mbarrier_init` publishes the barriers of a cluster; its barrier may be relaxed then.
//@ arch sm_90
//@ launch kernel grid 2 block 32
//@ arg x i32[64] input arange
//@ arg y i32[64] output
//@ expect y = copy(x)
#include "../cluster.cuh"
extern "C" __global__ void __cluster_dims__(2, 1, 1) kernel(const int* x, int* y) {
    __shared__ __align__(8) u64 bar;
    if (threadIdx.x == 0) {
        INIT(&bar, 1);
        FENCE_INIT();
    }
    CLUSTER_ARRIVE_RELAXED();
    CLUSTER_WAIT();
    if (threadIdx.x == 0) ARRIVE_PEER(&bar, cluster_rank() ^ 1);
    WAIT(&bar, 0);
    int i = blockIdx.x * 32 + threadIdx.x;
    y[i] = x[i];
    CLUSTER_SYNC();
}
