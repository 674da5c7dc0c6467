// Values go round a ring of four blocks, each stage guarded by full and empty barriers.
//@ arch sm_90
//@ launch kernel grid 4 block 32 cluster 4
//@ arg x i32[128] input arange
//@ arg y i32[128] output
//@ expect y = copy(x)
#include "../cluster.cuh"
extern "C" __global__ void kernel(const int* x, int* y) {
    __shared__ int slot[32];
    __shared__ __align__(8) u64 full, empty;
    int t = threadIdx.x, v = x[blockIdx.x * 32 + t];
    unsigned rank = cluster_rank(), next = (rank + 1) % 4, before = (rank + 3) % 4;
    if (t == 0) {
        INIT(&full, 32);
        INIT(&empty, 32);
        FENCE_INIT();
    }
    CLUSTER_SYNC();
    for (int i = 0; i < 4; ++i) {
        if (i > 0) {
            if (i & 1) WAIT(&empty, 0);
            else WAIT(&empty, 1);
        }
        STORE_PEER(&slot[t], next, v);
        ARRIVE_PEER(&full, next);
        if (i & 1) WAIT(&full, 1);
        else WAIT(&full, 0);
        v = slot[t];
        ARRIVE_PEER(&empty, before);
    }
    y[blockIdx.x * 32 + t] = v;
    CLUSTER_SYNC();
}
