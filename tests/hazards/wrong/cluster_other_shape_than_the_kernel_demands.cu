// The launch has clusters of four, the kernel demands two.
//@ verdict launch_failed
//@ arch sm_90
//@ launch kernel grid 4 block 64 cluster 4
//@ arg x i32[256] input arange
//@ arg y i32[256] output
#include "../cluster.cuh"
extern "C" __global__ void __cluster_dims__(2, 1, 1) kernel(const int* x, int* y) {
    y[blockIdx.x * 64 + threadIdx.x] = x[blockIdx.x * 64 + threadIdx.x];
}
