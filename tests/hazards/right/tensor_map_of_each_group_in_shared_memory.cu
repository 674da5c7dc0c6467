// A warp replaces the address and the rows of a map for each group of a batch, copies it out, and loads by it.
//@ arch sm_90a
//@ launch kernel grid 1 block 64
//@ arg x f32[2048] input arange
//@ arg y f32[2048] output
//@ map mx x 32,64 box 32,8
//@ arg own f32[64] scratch
//@ expect y = copy(x)
#include "../bulk.cuh"
#include "../warpgroup.cuh"
extern "C" __global__ void kernel(const float* x, float* y, MAP mx, u64* own) {
    __shared__ __align__(128) float s[256];
    __shared__ __align__(128) u64 map[16];
    CUtensorMap* mine = (CUtensorMap*)own;
    BARRIER(bar);
    if (threadIdx.x < 16) map[threadIdx.x] = mx.opaque[threadIdx.x];
    __syncthreads();
    for (int group = 0; group < 8; ++group) {
        if (threadIdx.x < 32) {
            if (threadIdx.x == 0) {
                MAP_ADDRESS(map, x + 256 * group);
                MAP_ROWS(map, 8);
            }
            __syncwarp();
            MAP_COPY(mine, map);
            if (threadIdx.x == 0) {
                MAP_ACQUIRE(mine);
                EXPECT(bar, 1024);
                LOAD_BOX(s, *mine, 0, 0, bar);
            }
        }
        if (group & 1) WAIT(bar, 1); else WAIT(bar, 0);
        for (int i = threadIdx.x; i < 256; i += 64) y[256 * group + i] = s[i];
        __syncthreads();
    }
}
