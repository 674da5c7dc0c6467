// A second allocation waits for columns that nobody frees.
//@ verdict deadlock
//@ arch sm_100a
//@ launch kernel grid 1 block 128
//@ arg a f16[8192] input mod 7
//@ arg b f16[1024] input mod 5
//@ arg c f32[2048] output
#include "../bulk.cuh"
#include "../warpgroup.cuh"
#include "../tensor_core.cuh"
extern "C" __global__ void kernel(const u16* a, const u16* b, float* c) {
    __shared__ u32 slot[2];
    T_ALLOC(slot[0], 512);
    __syncthreads();
    T_ALLOC(slot[1], 32); // HAZARD
    __syncthreads();
    T_FREE(slot[0], 512);
    T_FREE(slot[1], 32);
    c[threadIdx.x] = a[0] + b[0];
}
