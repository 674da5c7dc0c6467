// Only one block expects the bytes that both receive.
//@ verdict deadlock
//@ arch sm_90
//@ launch kernel grid 2 block 64
//@ arg x i32[128] input arange
//@ arg y i32[256] output
#include "../cluster.cuh"
extern "C" __global__ void __cluster_dims__(2, 1, 1) kernel(const int* x, int* y) {
    __shared__ __align__(128) int tile[128];
    __shared__ __align__(8) u64 full;
    int t = threadIdx.x;
    unsigned rank = cluster_rank();
    if (t == 0) {
        INIT(&full, 1);
        FENCE_INIT();
        if (rank == 0) EXPECT(&full, 512);
    }
    CLUSTER_SYNC();
    if (t == 0) COPY_ALL(&tile[rank * 64], x + rank * 64, 256, &full, 3);
    WAIT(&full, 0); // HAZARD
    y[blockIdx.x * 128 + t] = tile[t];
    y[blockIdx.x * 128 + 64 + t] = tile[64 + t];
}
