// Four blocks add to one word of the first.
//@ arch sm_90
//@ launch kernel grid 4 block 64 cluster 4
//@ arg x i32[256] input mod 7
//@ arg y i32[1] output
//@ expect y = sum(x)
#include "../cluster.cuh"
extern "C" __global__ void kernel(const int* x, int* y) {
    __shared__ int sum;
    if (threadIdx.x == 0) sum = 0;
    CLUSTER_SYNC();
    asm volatile("red.relaxed.cluster.shared::cluster.add.s32 [%0], %1;" ::"r"(peer(SHARED(&sum), 0)), "r"(x[blockIdx.x * 64 + threadIdx.x]) : "memory");
    CLUSTER_SYNC();
    if (cluster_rank() == 0 && threadIdx.x == 0) y[0] = sum;
}
