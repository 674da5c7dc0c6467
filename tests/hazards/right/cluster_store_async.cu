// Stores that complete at the barrier of the other block.
//@ arch sm_90
//@ launch kernel grid 2 block 64
//@ arg x i32[128] input arange
//@ arg y i32[128] output
//@ expect y = reverse_blocks(x, 128)
#include "../cluster.cuh"
extern "C" __global__ void __cluster_dims__(2, 1, 1) kernel(const int* x, int* y) {
    __shared__ int s[64];
    __shared__ __align__(8) u64 full;
    int t = threadIdx.x;
    unsigned other = cluster_rank() ^ 1;
    if (t == 0) {
        INIT(&full, 1);
        FENCE_INIT();
        EXPECT(&full, 256);
    }
    CLUSTER_SYNC();
    STORE_ASYNC(&s[63 - t], &full, other, x[blockIdx.x * 64 + t]);
    WAIT(&full, 0);
    y[blockIdx.x * 64 + t] = s[t];
}
