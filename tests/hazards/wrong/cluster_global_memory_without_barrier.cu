// Blocks of a cluster run at once, and nothing orders their global memory.
//@ verdict race
//@ arch sm_90
//@ also uninitialized
//@ launch kernel grid 2 block 64
//@ arg x i32[128] input arange
//@ arg z i32[128] scratch
//@ arg y i32[128] output
#include "../cluster.cuh"
extern "C" __global__ void __cluster_dims__(2, 1, 1) kernel(const int* x, int* z, int* y) {
    int at = blockIdx.x * 64 + threadIdx.x;
    z[at] = x[at]; // HAZARD
    __syncthreads();
    y[at] = z[127 - at]; // HAZARD
}
