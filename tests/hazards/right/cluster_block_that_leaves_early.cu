// A block that no other needs exits, and counts as arrived.
//@ arch sm_90
//@ launch kernel grid 4 block 32 cluster 4
//@ arg x i32[32] input arange
//@ arg y i32[32] output
//@ expect y = copy(x)
#include "../cluster.cuh"
extern "C" __global__ void kernel(const int* x, int* y) {
    __shared__ int s[32];
    int t = threadIdx.x, v;
    unsigned rank = cluster_rank();
    s[t] = x[t];
    CLUSTER_SYNC();
    if (rank > 1) return;
    LOAD_PEER(v, &s[t], rank ^ 1);
    if (rank == 0) y[t] = v;
    CLUSTER_SYNC();
}
