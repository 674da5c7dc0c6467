// Only some threads of a warp reach an aligned barrier of the cluster.
//@ verdict barrier_divergence|deadlock
//@ arch sm_90
//@ launch kernel grid 2 block 64
//@ arg x i32[128] input arange
//@ arg y i32[128] output
#include "../cluster.cuh"
extern "C" __global__ void __cluster_dims__(2, 1, 1) kernel(const int* x, int* y) {
    if (threadIdx.x % 32 < 16) {
        CLUSTER_ARRIVE(); // HAZARD
    }
    __syncwarp();
    y[blockIdx.x * 64 + threadIdx.x] = x[blockIdx.x * 64 + threadIdx.x];
}
