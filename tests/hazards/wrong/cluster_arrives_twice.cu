// A thread arrives twice without a wait between.
//@ verdict barrier_divergence
//@ arch sm_90
//@ launch kernel grid 2 block 64
//@ arg x i32[128] input arange
//@ arg y i32[128] output
#include "../cluster.cuh"
extern "C" __global__ void __cluster_dims__(2, 1, 1) kernel(const int* x, int* y) {
    CLUSTER_ARRIVE(); // CONFLICT
    CLUSTER_ARRIVE(); // HAZARD
    CLUSTER_WAIT();
    y[blockIdx.x * 64 + threadIdx.x] = x[blockIdx.x * 64 + threadIdx.x];
}
