// The barrier of the cluster orders global memory of its blocks.
//@ arch sm_90
//@ launch kernel grid 2 block 64
//@ arg x i32[128] input arange
//@ arg z i32[128] scratch
//@ arg y i32[128] output
//@ expect y = reverse_blocks(x, 128)
#include "../cluster.cuh"
extern "C" __global__ void __cluster_dims__(2, 1, 1) kernel(const int* x, int* z, int* y) {
    int at = blockIdx.x * 64 + threadIdx.x;
    z[at] = x[at];
    CLUSTER_SYNC();
    y[at] = z[127 - at];
}
