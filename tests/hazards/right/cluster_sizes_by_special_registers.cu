// The number of clusters, the blocks of one, and that the launch names them.
//@ arch sm_90
//@ launch kernel grid 6 block 1 cluster 2
//@ arg y i32[6] output
//@ expect y = iota()
#include "../cluster.cuh"
extern "C" __global__ void kernel(int* y) {
    unsigned clusters, blocks, id, explicit_;
    asm("mov.u32 %0, %%nclusterid.x;" : "=r"(clusters));
    asm("mov.u32 %0, %%cluster_nctarank;" : "=r"(blocks));
    asm("mov.u32 %0, %%clusterid.x;" : "=r"(id));
    asm("{\n .reg .pred p;\n mov.pred p, %%is_explicit_cluster;\n selp.u32 %0, 1, 0, p;\n}" : "=r"(explicit_));
    y[blockIdx.x] = clusters == 3 && blocks == 2 && explicit_ ? id * blocks + cluster_rank() : -1;
}
