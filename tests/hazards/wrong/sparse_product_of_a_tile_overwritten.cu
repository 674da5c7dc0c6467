// Shared memory of the second step of B is overwritten while a sparse product reads it.
//@ arch sm_90a
//@ launch kernel grid 1 block 128
//@ arg a f16[1024] input mod 7
//@ arg b f16[256] input mod 5
//@ arg c f32[512] output
//@ verdict race
#include "../bulk.cuh"
#include "../warpgroup.cuh"
// The places of the two elements of a chunk, as bits 0 to 1 and 2 to 3.
__device__ u32 places(int row, int chunk) { return 0xedc984u >> (row * 3 + chunk * 5) % 6 * 4 & 15; }
__device__ float single(u16 half) {
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(half));
    return value;
}
extern "C" __global__ void kernel(const u16* a, const u16* b, float* c) {
    // Core matrices of eight rows of 16 bytes: A has 2 of them beside each other, B has 4.
    TILE(sa, 1024);
    TILE(sb, 256);
    for (int i = threadIdx.x; i < 1024; i += 128) sa[(i / 16 / 8 * 2 + i % 16 / 8) * 64 + i / 16 % 8 * 8 + i % 8] = a[i];
    for (int i = threadIdx.x; i < 256; i += 128) sb[i % 32 / 8 * 64 + i / 32 * 8 + i % 8] = b[i];
    FENCE_ASYNC();
    __syncthreads();
    // Lanes 2 and 3 of four have the chunks of row lane / 4 and of the one eight further.
    const int lane = threadIdx.x % 32, first = threadIdx.x / 32 * 16 + lane / 4;
    u32 metadata = 0;
    for (int chunk = 0; chunk < 4; ++chunk)
        for (int lower = 0; lower < 2; ++lower)
            metadata |= places(first + 8 * lower, lane % 2 * 4 + chunk) << (16 * lower + 4 * chunk);
    float d[4];
    WG_FENCE();
    asm volatile("wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.f16.f16 {%0, %1, %2, %3}, %4, %5, %6, 1, 0, 1, 1, 0, 0;" : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3]) : "l"(descriptor(sa, 128, 256, 0)), "l"(descriptor(sb, 128, 256, 0)), "r"(metadata)); // CONFLICT
    WG_COMMIT();
    if (threadIdx.x == 0) sb[128] = 0; // HAZARD
    WG_WAIT(0);
    for (int i = 0; i < 4; ++i) {
        const int row = first + i / 2 * 8, column = lane % 4 * 2 + i % 2;
        float sum = 0;
        for (int k = 0; k < 16; ++k) {
            const int at = k / 2 * 4 + (places(row, k / 2) >> k % 2 * 2 & 3);
            sum += single(a[row * 16 + k]) * single(b[column * 32 + at]);
        }
        c[row * 8 + column] = d[i] - sum;
    }
}
