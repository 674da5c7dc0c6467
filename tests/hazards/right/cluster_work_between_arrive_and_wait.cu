// Local work between the arrival at the barrier of the cluster and the wait.
//@ arch sm_90
//@ launch kernel grid 2 block 64
//@ arg x i32[128] input arange
//@ arg y i32[128] output
//@ expect y = reverse_blocks(x, 128)
#include "../cluster.cuh"
extern "C" __global__ void __cluster_dims__(2, 1, 1) kernel(const int* x, int* y) {
    __shared__ int s[64], own[64];
    int t = threadIdx.x, v;
    s[t] = x[blockIdx.x * 64 + t];
    CLUSTER_ARRIVE();
    own[t] = t;
    __syncthreads();
    int at = own[63 - t];
    CLUSTER_WAIT();
    LOAD_PEER(v, &s[at], cluster_rank() ^ 1);
    y[blockIdx.x * 64 + t] = v;
    CLUSTER_ARRIVE();
    CLUSTER_WAIT();
}
