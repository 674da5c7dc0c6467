// An address is mapped to the third of two blocks.
//@ verdict crashed
//@ arch sm_90
//@ launch kernel grid 2 block 64
//@ arg x i32[128] input arange
//@ arg y i32[128] output
#include "../cluster.cuh"
extern "C" __global__ void __cluster_dims__(2, 1, 1) kernel(const int* x, int* y) {
    __shared__ int s[64];
    int t = threadIdx.x, v;
    unsigned at;
    s[t] = x[blockIdx.x * 64 + t];
    CLUSTER_SYNC();
    asm volatile("mapa.shared::cluster.u32 %0, %1, 2;" : "=r"(at) : "r"(SHARED(&s[t]))); // HAZARD
    asm volatile("ld.shared::cluster.s32 %0, [%1];" : "=r"(v) : "r"(at) : "memory");
    y[blockIdx.x * 64 + t] = v;
    CLUSTER_SYNC();
}
