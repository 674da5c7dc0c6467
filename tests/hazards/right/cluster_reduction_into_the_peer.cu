// A reducing copy adds the own array to that of the peer, whose barrier counts the bytes.
//@ arch sm_90
//@ launch kernel grid 2 block 32
//@ arg x i32[64] input arange
//@ arg y i32[64] output
//@ expect y = scale(x, 2)
#include "../cluster.cuh"
extern "C" __global__ void __cluster_dims__(2, 1, 1) kernel(const int* x, int* y) {
    __shared__ __align__(16) int s[32], sum[32];
    __shared__ __align__(8) u64 bar;
    int t = threadIdx.x, other = (cluster_rank() ^ 1) * 32 + t;
    s[t] = x[other];
    sum[t] = x[blockIdx.x * 32 + t];
    if (t == 0) {
        INIT(&bar, 1);
        FENCE_INIT();
        EXPECT(&bar, 128);
    }
    FENCE_PROXY();
    CLUSTER_SYNC();
    if (t == 0) {
        unsigned rank = cluster_rank() ^ 1;
        asm volatile("cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.add.s32 [%0], [%1], 128, [%2];" ::"r"(peer(SHARED(sum), rank)), "r"(SHARED(s)), "r"(peer(SHARED(&bar), rank)) : "memory");
    }
    WAIT(&bar, 0);
    y[blockIdx.x * 32 + t] = sum[t];
    CLUSTER_SYNC();
}
