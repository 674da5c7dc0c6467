// The source of a copy to the other block is overwritten before it has arrived.
//@ verdict race
//@ arch sm_90
//@ launch kernel grid 2 block 64
//@ arg x i32[128] input arange
//@ arg y i32[128] output
#include "../cluster.cuh"
extern "C" __global__ void __cluster_dims__(2, 1, 1) kernel(const int* x, int* y) {
    __shared__ __align__(128) int s[64], r[64];
    __shared__ __align__(8) u64 full;
    int t = threadIdx.x;
    unsigned other = cluster_rank() ^ 1;
    if (t == 0) {
        INIT(&full, 1);
        FENCE_INIT();
        EXPECT(&full, 256);
    }
    s[t] = x[blockIdx.x * 64 + t];
    FENCE_PROXY();
    CLUSTER_SYNC();
    if (t == 0) COPY_PEER(r, s, 256, &full, other); // CONFLICT
    __syncthreads();
    s[t] = t; // HAZARD
    WAIT(&full, 0);
    y[blockIdx.x * 64 + t] = r[t];
    CLUSTER_SYNC();
}
