// y[r][c] = 2 x[r][c]. With MAPS a block of ROWS rows loads those of its opposite in the cluster by a tensor map, reads its own from
// the opposite's shared memory, and stores them by another map.
#include <cuda.h>
#include <cooperative_groups.h>

typedef unsigned long long u64;

__device__ float* opposite(float* tile) {
    auto cluster = cooperative_groups::this_cluster();
    return cluster.map_shared_rank(tile, CLUSTER - 1 - cluster.block_rank());
}

#if MAPS
__device__ unsigned at(const void* pointer) { return (unsigned)__cvta_generic_to_shared(pointer); }

extern "C" __global__ void mapped(const __grid_constant__ CUtensorMap x, const __grid_constant__ CUtensorMap y) {
    extern __shared__ __align__(1024) float tile[];
    __shared__ u64 barrier;
    auto cluster = cooperative_groups::this_cluster();
    const int own = blockIdx.x * ROWS, row = (blockIdx.x + CLUSTER - 1 - 2 * cluster.block_rank()) * ROWS;
    float* out = tile + ROWS * 32;
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(at(&barrier)));
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        asm volatile("{ .reg .b64 s; mbarrier.arrive.expect_tx.shared.b64 s, [%0], %1; }" ::"r"(at(&barrier)), "r"(128 * ROWS) : "memory");
        asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"
                     ::"r"(at(tile)), "l"(&x), "r"(0), "r"(row), "r"(at(&barrier)) : "memory");
    }
    __syncthreads();
    unsigned done = 0;
    while (!done)
        asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], 0; selp.u32 %0, 1, 0, p; }"
                     : "=r"(done) : "r"(at(&barrier)) : "memory");
    cluster.sync();
    const float* other = opposite(tile);
    for (int i = threadIdx.x; i < ROWS * 32; i += blockDim.x) out[i] = 2.0f * other[i];
    cluster.sync();
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (threadIdx.x == 0) {
        asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%1, %2}], [%3];"
                     ::"l"(&y), "r"(0), "r"(own), "r"(at(out)) : "memory");
        asm volatile("cp.async.bulk.commit_group;");
        asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
    }
}
#else
extern "C" __global__ void plain(const float* x, float* y, int R, int C) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < R * C; i += gridDim.x * blockDim.x) y[i] = 2.0f * x[i];
}
#endif
