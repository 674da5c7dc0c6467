// One block waits for an arrival that the other makes after the barrier of the cluster.
//@ verdict deadlock
//@ arch sm_90
//@ launch kernel grid 2 block 64
//@ arg x i32[128] input arange
//@ arg y i32[128] output
#include "../cluster.cuh"
extern "C" __global__ void __cluster_dims__(2, 1, 1) kernel(const int* x, int* y) {
    __shared__ __align__(8) u64 go;
    unsigned rank = cluster_rank();
    if (threadIdx.x == 0) {
        INIT(&go, 64);
        FENCE_INIT();
    }
    CLUSTER_SYNC();
    if (rank == 0) WAIT(&go, 0); // HAZARD
    CLUSTER_SYNC(); // HAZARD
    if (rank == 1) ARRIVE_PEER(&go, 0);
    y[blockIdx.x * 64 + threadIdx.x] = x[blockIdx.x * 64 + threadIdx.x];
}
