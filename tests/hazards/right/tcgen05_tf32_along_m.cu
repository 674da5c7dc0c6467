// Elements of 32 bits along M, in rows of 128 bytes that a swizzle permutes in atoms of 32 bytes.
//@ arch sm_100a
//@ launch kernel grid 1 block 128
//@ arg a f32[1024] input mod 7
//@ arg b f32[128] input mod 5
//@ arg c f32[2048] output
//@ expect c = gemm_nt(a, b, 128, 16, 8)
#include "../bulk.cuh"
#include "../warpgroup.cuh"
#include "../tensor_core.cuh"
extern "C" __global__ void kernel(const float* a, const float* b, float* c) {
    // Patterns of four rows along K, 512 bytes each; 1024 bytes from 32 rows of A to the next.
    __shared__ __align__(1024) float sa[1024];
    __shared__ __align__(1024) float sb[128];
    for (int i = threadIdx.x; i < 1024; i += 128) {
        const int m = i / 8, k = i % 8;
        sa[m / 32 * 256 + k / 4 * 128 + k % 4 * 32 + (m % 32 / 8 ^ k % 4) * 8 + m % 8] = a[i];
    }
    sb[threadIdx.x / 64 * 64 + threadIdx.x % 8 / 4 * 32 + threadIdx.x / 8 % 8 * 4 + threadIdx.x % 4] = b[threadIdx.x];
    __shared__ u32 slot;
    T_ALLOC(slot, 32);
    FENCE_ASYNC();
    BARRIER(bar);
    T_AFTER();
    u32 d = slot;
    if (threadIdx.x == 0) {
        T_MMA("tf32", d, t_descriptor(sa, 1024, 512, 1), t_descriptor(sb, 128, 256, 0), T_FORM(128, 16) | 2u << 7 | 2u << 10 | 1u << 15, 0);
        T_COMMIT(bar);
    }
    WAIT(bar, 0);
    T_AFTER();
    T_RESULT(c, d);
    T_SYNC();
    T_FREE(d, 32);
}
