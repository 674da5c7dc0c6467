// A generic address of the other block, by the group of the cluster.
//@ arch sm_90
//@ launch kernel grid 2 block 64
//@ arg x i32[128] input arange
//@ arg y i32[128] output
//@ expect y = reverse_blocks(x, 128)
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
extern "C" __global__ void __cluster_dims__(2, 1, 1) kernel(const int* x, int* y) {
    __shared__ int s[64];
    cg::cluster_group cluster = cg::this_cluster();
    int t = threadIdx.x;
    s[t] = x[blockIdx.x * 64 + t];
    cluster.sync();
    const int* there = cluster.map_shared_rank(s, cluster.block_rank() ^ 1);
    y[blockIdx.x * 64 + t] = there[63 - t];
    cluster.sync();
}
