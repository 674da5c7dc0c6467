// One thread changes forty maps, releases them at once, acquires each and stores by it.
//@ arch sm_90a
//@ launch kernel grid 1 block 64
//@ arg x f32[10240] input arange
//@ arg y f32[10240] output
//@ map mx x 32,8 box 32,8
//@ arg own f32[1280] scratch
//@ expect y = copy(x)
#include "../bulk.cuh"
#include "../warpgroup.cuh"
extern "C" __global__ void kernel(const float* x, float* y, MAP mx, u64* own) {
    __shared__ __align__(128) float s[256];
    CUtensorMap* maps = (CUtensorMap*)own;
    for (int i = threadIdx.x; i < 640; i += 64) own[i] = mx.opaque[i % 16];
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int group = 0; group < 40; ++group) MAP_ADDRESS(maps + group, y + 256 * group);
        MAP_RELEASE();
        for (int group = 0; group < 40; ++group) MAP_ACQUIRE(maps + group);
    }
    for (int group = 0; group < 40; ++group) {
        for (int i = threadIdx.x; i < 256; i += 64) s[i] = x[256 * group + i];
        FENCE_ASYNC();
        __syncthreads();
        if (threadIdx.x == 0) {
            STORE_BOX(s, maps[group], 0, 0);
            STORE_COMMIT();
            STORE_WAIT();
        }
        __syncthreads();
    }
}
