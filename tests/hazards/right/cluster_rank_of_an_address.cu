// The rank of the block that an address belongs to.
//@ arch sm_90
//@ launch kernel grid 2 block 1
//@ arg y i32[2] output
//@ expect y = iota()
#include "../cluster.cuh"
extern "C" __global__ void __cluster_dims__(2, 1, 1) kernel(int* y) {
    __shared__ int s;
    unsigned rank, other, own = cluster_rank();
    asm("getctarank.shared::cluster.u32 %0, %1;" : "=r"(rank) : "r"(SHARED(&s)));
    asm("getctarank.shared::cluster.u32 %0, %1;" : "=r"(other) : "r"(peer(SHARED(&s), own ^ 1)));
    y[blockIdx.x] = rank == own && other == (own ^ 1) ? own : -1;
}
