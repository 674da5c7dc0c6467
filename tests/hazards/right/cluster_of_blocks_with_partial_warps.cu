// Blocks of 40 threads, whose last warps are not whole.
//@ arch sm_90
//@ launch kernel grid 2 block 40
//@ arg x i32[80] input arange
//@ arg y i32[80] output
//@ expect y = reverse_blocks(x, 80)
#include "../cluster.cuh"
extern "C" __global__ void __cluster_dims__(2, 1, 1) kernel(const int* x, int* y) {
    __shared__ int s[40];
    int t = threadIdx.x, v;
    s[t] = x[blockIdx.x * 40 + t];
    CLUSTER_SYNC();
    LOAD_PEER(v, &s[39 - t], cluster_rank() ^ 1);
    y[blockIdx.x * 40 + t] = v;
    CLUSTER_SYNC();
}
