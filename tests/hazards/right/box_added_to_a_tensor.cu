// A reducing copy adds a box to the tensor.
//@ arch sm_90a
//@ launch kernel grid 1 block 128
//@ arg x f32[1024] input arange
//@ arg y f32[1024] inout constant 1
//@ map my y 32,32 box 32,32
//@ expect y = plus_one(x)
#include "../bulk.cuh"
#include "../warpgroup.cuh"
extern "C" __global__ void kernel(const float* x, float* y, MAP my) {
    __shared__ __align__(128) float s[1024];
    for (int i = threadIdx.x; i < 1024; i += 128) s[i] = x[i];
    FENCE_ASYNC();
    __syncthreads();
    if (threadIdx.x == 0) {
        asm volatile("cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group [%0, {%1, %2}], [%3];" ::"l"(&my), "r"(0), "r"(0), "r"(ADDRESS(s)) : "memory");
        STORE_COMMIT();
        STORE_WAIT();
    }
}
