// An index leaves the array of the other block.
//@ verdict out_of_bounds
//@ arch sm_90
//@ launch kernel grid 2 block 64
//@ arg x i32[128] input arange
//@ arg y i32[128] output
#include "../cluster.cuh"
extern "C" __global__ void __cluster_dims__(2, 1, 1) kernel(const int* x, int* y) {
    __shared__ int s[64];
    int t = threadIdx.x, v;
    s[t] = x[blockIdx.x * 64 + t];
    CLUSTER_SYNC();
    LOAD_PEER(v, &s[64 - t], cluster_rank() ^ 1); // HAZARD
    y[blockIdx.x * 64 + t] = v;
    CLUSTER_SYNC();
}
