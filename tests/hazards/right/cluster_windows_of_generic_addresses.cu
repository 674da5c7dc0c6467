// The window of a cluster contains that of the block, which holds no address of the peer.
//@ arch sm_90
//@ launch kernel grid 2 block 32
//@ arg x i32[64] input arange
//@ arg y i32[64] output
//@ expect y = copy(x)
#include "../cluster.cuh"
static __device__ __forceinline__ int is_own(u64 at) {
    int is;
    asm volatile("{\n .reg .pred p;\n isspacep.shared::cta p, %1;\n selp.s32 %0, 1, 0, p;\n}" : "=r"(is) : "l"(at));
    return is;
}
static __device__ __forceinline__ int is_cluster(u64 at) {
    int is;
    asm volatile("{\n .reg .pred p;\n isspacep.shared::cluster p, %1;\n selp.s32 %0, 1, 0, p;\n}" : "=r"(is) : "l"(at));
    return is;
}
extern "C" __global__ void __cluster_dims__(2, 1, 1) kernel(const int* x, int* y) {
    __shared__ int s[32];
    s[threadIdx.x] = 0;
    u64 own = (u64)&s[threadIdx.x], other;
    asm volatile("mapa.u64 %0, %1, %2;" : "=l"(other) : "l"(own), "r"(cluster_rank() ^ 1));
    int right = is_own(own) && is_cluster(own) && !is_own(other) && is_cluster(other) && !is_cluster((u64)x);
    int i = blockIdx.x * 32 + threadIdx.x;
    y[i] = right ? x[i] : -1;
    CLUSTER_SYNC();
}
