// No device has clusters of seventeen blocks.
//@ verdict launch_failed
//@ arch sm_90
//@ launch kernel grid 17 block 32 cluster 17
//@ arg x i32[544] input arange
//@ arg y i32[544] output
#include "../cluster.cuh"
extern "C" __global__ void kernel(const int* x, int* y) {
    y[blockIdx.x * 32 + threadIdx.x] = x[blockIdx.x * 32 + threadIdx.x];
}
