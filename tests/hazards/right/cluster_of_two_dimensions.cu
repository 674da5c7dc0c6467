// Four blocks in two dimensions know their places.
//@ arch sm_90
//@ launch kernel grid 4,2 block 1 cluster 2,2
//@ arg y i32[8] output
//@ expect y = iota()
#include "../cluster.cuh"
extern "C" __global__ void kernel(int* y) {
    unsigned x, y_, nx, ny, cx, rank;
    asm("mov.u32 %0, %%cluster_ctaid.x;" : "=r"(x));
    asm("mov.u32 %0, %%cluster_ctaid.y;" : "=r"(y_));
    asm("mov.u32 %0, %%cluster_nctaid.x;" : "=r"(nx));
    asm("mov.u32 %0, %%cluster_nctaid.y;" : "=r"(ny));
    asm("mov.u32 %0, %%clusterid.x;" : "=r"(cx));
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    unsigned column = cx * nx + x, row = y_;
    bool right = rank == y_ * nx + x && ny == 2 && column == blockIdx.x && row == blockIdx.y;
    y[row * 4 + column] = right ? row * 4 + column : -1;
}
