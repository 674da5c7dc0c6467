// Each block stores into the memory of the other, which has started.
//@ arch sm_90
//@ launch kernel grid 2 block 64
//@ arg x i32[128] input arange
//@ arg y i32[128] output
//@ expect y = reverse_blocks(x, 128)
#include "../cluster.cuh"
extern "C" __global__ void __cluster_dims__(2, 1, 1) kernel(const int* x, int* y) {
    __shared__ int s[64];
    int t = threadIdx.x;
    CLUSTER_SYNC();
    STORE_PEER(&s[63 - t], cluster_rank() ^ 1, x[blockIdx.x * 64 + t]);
    CLUSTER_SYNC();
    y[blockIdx.x * 64 + t] = s[t];
}
