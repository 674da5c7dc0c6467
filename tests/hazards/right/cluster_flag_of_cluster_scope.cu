// A flag in the memory of the other block, released and acquired at the scope of the cluster.
//@ arch sm_90
//@ launch kernel grid 2 block 32
//@ arg x i32[32] input arange
//@ arg y i32[32] output
//@ expect y = copy(x)
#include "../cluster.cuh"
extern "C" __global__ void __cluster_dims__(2, 1, 1) kernel(const int* x, int* y) {
    __shared__ int s[32], flag;
    int t = threadIdx.x;
    if (t == 0) flag = 0;
    CLUSTER_SYNC();
    if (cluster_rank() == 0) {
        STORE_PEER(&s[t], 1, x[t]);
        __syncwarp();
        if (t == 0) asm volatile("st.release.cluster.shared::cluster.s32 [%0], 1;" ::"r"(peer(SHARED(&flag), 1)) : "memory");
    } else {
        int seen = 0;
        while (!seen) asm volatile("ld.acquire.cluster.shared::cta.s32 %0, [%1];" : "=r"(seen) : "r"(SHARED(&flag)) : "memory");
        y[t] = s[t];
    }
}
