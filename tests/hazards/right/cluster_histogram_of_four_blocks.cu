// The bins of a histogram are distributed over four blocks.
//@ arch sm_90
//@ launch kernel grid 4 block 64 cluster 4
//@ arg x i32[256] input mod 32
//@ arg y i32[32] output
//@ expect y = histogram(x)
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
extern "C" __global__ void kernel(const int* x, int* y) {
    __shared__ int bins[8];
    cg::cluster_group cluster = cg::this_cluster();
    int t = threadIdx.x;
    if (t < 8) bins[t] = 0;
    cluster.sync();
    int v = x[blockIdx.x * 64 + t];
    atomicAdd(cluster.map_shared_rank(&bins[v % 8], v / 8), 1);
    cluster.sync();
    if (t < 8) y[cluster.block_rank() * 8 + t] = bins[t];
}
