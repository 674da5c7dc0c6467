// A block reads a sum to which others still add asynchronously.
//@ verdict race
//@ arch sm_90
//@ launch kernel grid 2 block 64
//@ arg x i32[128] input mod 9
//@ arg y i32[1] output
#include "../cluster.cuh"
extern "C" __global__ void __cluster_dims__(2, 1, 1) kernel(const int* x, int* y) {
    __shared__ int sum;
    __shared__ __align__(8) u64 full;
    if (threadIdx.x == 0) {
        sum = 0;
        INIT(&full, 1);
        FENCE_INIT();
        if (cluster_rank() == 0) EXPECT(&full, 512);
    }
    CLUSTER_SYNC();
    ADD_ASYNC(&sum, &full, 0, x[blockIdx.x * 64 + threadIdx.x]); // HAZARD
    if (cluster_rank() == 0) {
        if (threadIdx.x == 0) y[0] = sum; // HAZARD
        WAIT(&full, 0);
    }
}
