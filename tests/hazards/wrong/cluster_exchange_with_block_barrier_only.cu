// The barrier of a block does not order the memory of another.
//@ verdict race
//@ arch sm_90
//@ also uninitialized
//@ launch kernel grid 2 block 64
//@ arg x i32[128] input arange
//@ arg y i32[128] output
#include "../cluster.cuh"
extern "C" __global__ void __cluster_dims__(2, 1, 1) kernel(const int* x, int* y) {
    __shared__ int s[64];
    int t = threadIdx.x, v;
    CLUSTER_SYNC();
    s[t] = x[blockIdx.x * 64 + t]; // CONFLICT
    __syncthreads();
    LOAD_PEER(v, &s[63 - t], cluster_rank() ^ 1); // HAZARD
    y[blockIdx.x * 64 + t] = v;
    CLUSTER_SYNC();
}
