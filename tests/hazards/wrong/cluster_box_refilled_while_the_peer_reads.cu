// The second box is sent to both blocks before the other has read the first.
//@ verdict race
//@ arch sm_90
//@ launch kernel grid 2 block 128
//@ arg x f32[4096] input mod 11
//@ arg y f32[8192] output
//@ map m x 32,128 box 32,32
#include "../cluster.cuh"
extern "C" __global__ void __cluster_dims__(2, 1, 1) kernel(const float* x, float* y, const __grid_constant__ MAP m) {
    __shared__ __align__(128) float tile[64 * 32];
    __shared__ __align__(8) u64 full;
    unsigned rank = cluster_rank();
    if (threadIdx.x == 0) {
        INIT(&full, 1);
        FENCE_INIT();
    }
    CLUSTER_SYNC();
    for (int i = 0; i < 2; ++i) {
        if (threadIdx.x == 0) {
            EXPECT(&full, 8192);
            BOX_ALL(&tile[rank * 1024], m, 0, (int)(2 * i + rank) * 32, &full, 3); // HAZARD
        }
        if (i == 0) WAIT(&full, 0);
        else WAIT(&full, 1);
        for (int j = threadIdx.x; j < 2048; j += 128) y[blockIdx.x * 4096 + i * 2048 + j] = tile[j]; // HAZARD
        __syncthreads();
    }
    CLUSTER_SYNC();
}
