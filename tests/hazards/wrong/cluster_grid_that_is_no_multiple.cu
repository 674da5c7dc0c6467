// A grid of three blocks has no clusters of two.
//@ verdict launch_failed
//@ arch sm_90
//@ launch kernel grid 3 block 64
//@ arg x i32[192] input arange
//@ arg y i32[192] output
#include "../cluster.cuh"
extern "C" __global__ void __cluster_dims__(2, 1, 1) kernel(const int* x, int* y) {
    y[blockIdx.x * 64 + threadIdx.x] = x[blockIdx.x * 64 + threadIdx.x];
}
