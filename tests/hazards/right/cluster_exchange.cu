// Two blocks read the values of each other between two barriers of the cluster.
//@ arch sm_90
//@ launch kernel grid 2 block 64
//@ arg x i32[128] input arange
//@ arg y i32[128] output
//@ expect y = reverse_blocks(x, 128)
#include "../cluster.cuh"
extern "C" __global__ void __cluster_dims__(2, 1, 1) kernel(const int* x, int* y) {
    __shared__ int s[64];
    int t = threadIdx.x, v;
    s[t] = x[blockIdx.x * 64 + t];
    CLUSTER_SYNC();
    LOAD_PEER(v, &s[63 - t], cluster_rank() ^ 1);
    y[blockIdx.x * 64 + t] = v;
    CLUSTER_SYNC();
}
