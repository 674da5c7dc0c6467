// y is the sum of the 3 x 3 pixels around each one, zero outside the image: nine columns of pixels a block.
#include <cuda.h>

typedef unsigned long long u64;

__device__ unsigned at(const void* pointer) { return (unsigned)__cvta_generic_to_shared(pointer); }

extern "C" __global__ void columns(const __grid_constant__ CUtensorMap x, float* y, int N, int H, int W) {
    __shared__ alignas(1024) float column[PIXELS * 8];
    __shared__ u64 barrier;
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(at(&barrier)));
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    }
    __syncthreads();
    const int first = blockIdx.x * PIXELS;
    float sums[(PIXELS * 8 + 127) / 128] = {};
    for (int tap = 0; tap < 9; ++tap) {
        if (threadIdx.x == 0) {
            asm volatile("{ .reg .b64 s; mbarrier.arrive.expect_tx.shared.b64 s, [%0], %1; }" ::"r"(at(&barrier)), "r"(PIXELS * 32) : "memory");
            asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%0], [%1, {0, %2, %3, %4}], [%5], {%6, %7};"
                         ::"r"(at(column)), "l"(&x), "r"(first % W - 1), "r"(first / W % H - 1), "r"(first / W / H), "r"(at(&barrier)),
                         "h"((unsigned short)(tap % 3)), "h"((unsigned short)(tap / 3)) : "memory");
        }
        unsigned done = 0;
        while (!done)
            asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
                         : "=r"(done) : "r"(at(&barrier)), "r"(tap & 1) : "memory");
        // A swizzle of 32 bytes exchanges the halves of every other four pixels.
        for (int i = threadIdx.x, part = 0; i < PIXELS * 8; i += 128, ++part) sums[part] += column[i ^ (i >> 5 & 1) << 2];
        __syncthreads();
    }
    for (int i = threadIdx.x, part = 0; i < PIXELS * 8; i += 128, ++part)
        if (first * 8 + i < N * H * W * 8) y[first * 8 + i] = sums[part];
}
