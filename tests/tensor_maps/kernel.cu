// y[r][c] = 2 x[r][c]: a tile of ROWS x COLUMNS a block comes in and goes out by a tensor map.
#include <cuda.h>

typedef unsigned long long u64;

__device__ unsigned at(const void* pointer) { return (unsigned)__cvta_generic_to_shared(pointer); }

extern "C" __global__ void twice(const __grid_constant__ CUtensorMap x, const __grid_constant__ CUtensorMap y) {
    __shared__ alignas(1024) float tile[ROWS * COLUMNS];
    __shared__ u64 barrier;
    const int column = blockIdx.x * COLUMNS, row = blockIdx.y * ROWS;
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(at(&barrier)));
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        asm volatile("{ .reg .b64 s; mbarrier.arrive.expect_tx.shared.b64 s, [%0], %1; }" ::"r"(at(&barrier)), "r"(4 * ROWS * COLUMNS) : "memory");
        asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"
                     ::"r"(at(tile)), "l"(&x), "r"(column), "r"(row), "r"(at(&barrier)) : "memory");
    }
    __syncthreads();
    unsigned done = 0;
    while (!done)
        asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], 0; selp.u32 %0, 1, 0, p; }"
                     : "=r"(done) : "r"(at(&barrier)) : "memory");
    for (int i = threadIdx.x; i < ROWS * COLUMNS; i += blockDim.x) tile[i] *= 2.0f;
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (threadIdx.x == 0) {
        asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%1, %2}], [%3];"
                     ::"l"(&y), "r"(column), "r"(row), "r"(at(tile)) : "memory");
        asm volatile("cp.async.bulk.commit_group;");
        asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
    }
}
