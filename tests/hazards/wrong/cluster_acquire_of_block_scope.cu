// A wait with the scope of the block is not ordered after arrivals of the other.
//@ verdict race
//@ arch sm_90
//@ launch kernel grid 2 block 64
//@ arg x i32[128] input arange
//@ arg y i32[128] output
#include "../cluster.cuh"
extern "C" __global__ void __cluster_dims__(2, 1, 1) kernel(const int* x, int* y) {
    __shared__ int s[64];
    __shared__ __align__(8) u64 full;
    int t = threadIdx.x;
    unsigned other = cluster_rank() ^ 1;
    if (t == 0) {
        INIT(&full, 64);
        FENCE_INIT();
    }
    CLUSTER_SYNC();
    STORE_PEER(&s[63 - t], other, x[blockIdx.x * 64 + t]); // CONFLICT
    ARRIVE_PEER(&full, other);
    WAIT_BLOCK(&full, 0);
    y[blockIdx.x * 64 + t] = s[t]; // HAZARD
    CLUSTER_SYNC();
}
