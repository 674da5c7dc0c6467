// The columns are freed behind a barrier of the cluster at which all threads arrive relaxed after their loads.
//@ arch sm_100a
//@ launch kernel grid 1 block 128 cluster 1
//@ arg a f16[8192] input mod 7
//@ arg b f16[1024] input mod 5
//@ arg c f32[2048] output
//@ expect c = gemm_nt(a, b, 128, 16, 64)
#include "../bulk.cuh"
#include "../warpgroup.cuh"
#include "../tensor_core.cuh"
extern "C" __global__ void kernel(const u16* a, const u16* b, float* c) {
    T_TILES(a, b);
    __shared__ u32 slot;
    T_ALLOC(slot, 32);
    FENCE_ASYNC();
    BARRIER(bar);
    T_AFTER();
    u32 d = slot;
    if (threadIdx.x == 0) {
        T_PRODUCT(d, sa, sb, 0);
        T_COMMIT(bar);
    }
    __syncwarp();
    WAIT(bar, 0);
    T_AFTER();
    T_RESULT(c, d);
    T_BEFORE();
    asm volatile("barrier.cluster.arrive.relaxed.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
    T_AFTER();
    T_FREE(d, 32);
}
