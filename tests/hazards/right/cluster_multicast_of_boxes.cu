// Each block copies half of a tile of a tensor to both, and tells both that it has read it.
//@ arch sm_90
//@ launch kernel grid 2 block 128
//@ arg x f32[2048] input mod 11
//@ arg y f32[4096] output
//@ map m x 32,64 box 32,32
//@ expect y = repeated(x)
#include "../cluster.cuh"
extern "C" __global__ void __cluster_dims__(2, 1, 1) kernel(const float* x, float* y, const __grid_constant__ MAP m) {
    __shared__ __align__(128) float tile[64 * 32];
    __shared__ __align__(8) u64 full, empty;
    unsigned rank = cluster_rank();
    if (threadIdx.x == 0) {
        INIT(&full, 1);
        INIT(&empty, 256);
        FENCE_INIT();
    }
    CLUSTER_SYNC();
    if (threadIdx.x == 0) {
        EXPECT(&full, 8192);
        BOX_ALL(&tile[rank * 1024], m, 0, (int)rank * 32, &full, 3);
    }
    WAIT_BLOCK(&full, 0);
    for (int i = threadIdx.x; i < 2048; i += 128) y[blockIdx.x * 2048 + i] = tile[i];
    ARRIVE_PEER(&empty, rank ^ 1);
    ARRIVE_PEER(&empty, rank);
    WAIT(&empty, 0);
}
