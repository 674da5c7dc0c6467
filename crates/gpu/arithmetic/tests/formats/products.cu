// Prints products of 8-bit floats by wgmma m64n8k32, as h200.txt has them:
//   nvcc -std=c++17 -gencode arch=compute_90a,code=sm_90a products.cu -o products && ./products > h200.txt
// tensor_cores.rs computes the same inputs.
#include <cstdint>
#include <cstdio>
#include <cuda_runtime.h>

__device__ uint32_t mixed(uint32_t x) {
    x = (x ^ x >> 16) * 0x7feb352du;
    x = (x ^ x >> 15) * 0x846ca68bu;
    return x ^ x >> 16;
}

// Four finite numbers of e4m3 (kind even) or e5m2.
__device__ uint32_t finite(uint32_t seed, int kind) {
    const uint32_t special = kind % 2 ? 0x7c : 0x7f, flip = kind % 2 ? 4 : 1;
    uint32_t words = mixed(seed);
    for (int i = 0; i < 32; i += 8)
        if ((words >> i & special) == special) words ^= flip << i;
    return words;
}

// Kinds 0 and 1: any bytes; 2 and 3: three in four are zero; 4 and 5: finite, with half accumulators.
__device__ uint32_t factor(uint32_t seed, int kind) {
    if (kind < 2) return mixed(seed);
    uint32_t words = finite(seed, kind);
    if (kind < 4)
        for (int i = 0; i < 32; i += 8)
            if (mixed(seed ^ 0x5555aaaau) >> i & 3) words &= ~(0xffu << i);
    return words;
}

__device__ uint32_t half_of(uint32_t bits) {
    return (bits & 1) << 15 | (12 + (bits >> 8) % 6) << 10 | (bits >> 16 & 0x3ff);
}

// Core matrices of 8 rows of 16 bytes, 128 bytes apart along K and 256 along the rows.
__device__ uint64_t descriptor(const void* tile) {
    const uint64_t address = __cvta_generic_to_shared(tile);
    return (address & 0x3ffff) >> 4 | 128ull >> 4 << 16 | 256ull >> 4 << 32;
}

#define SINGLES(TYPE)                                                                                     \
    asm volatile("wgmma.mma_async.sync.aligned.m64n8k32.f32." TYPE "." TYPE                               \
                 " {%0, %1, %2, %3}, %4, %5, 1, 1, 1;"                                                    \
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "l"(left), "l"(right))
#define HALVES(TYPE)                                                                                      \
    asm volatile("wgmma.mma_async.sync.aligned.m64n8k32.f16." TYPE "." TYPE " {%0, %1}, %2, %3, 1, 1, 1;" \
                 : "+r"(h[0]), "+r"(h[1]) : "l"(left), "l"(right))

__global__ void __launch_bounds__(128) products(int kind, uint32_t* out) {
    __shared__ alignas(128) uint32_t a[64 * 8], b[8 * 8];
    const uint32_t thread = threadIdx.x, seed = kind * 0x200000 + 0x8000000;
    for (uint32_t i = thread; i < 64 * 8; i += 128) a[i] = factor(seed + i, kind);
    for (uint32_t i = thread; i < 8 * 8; i += 128) b[i] = factor(seed + 999 + i, kind);
    float d[4];
    uint32_t h[2];
    for (int i = 0; i < 4; i++) {
        const uint32_t bits = mixed(seed + 2000 + thread * 4 + i);
        d[i] = kind == 2 || kind == 3 ? (bits & 1 ? 0.0f : 1.5f) : (int)bits * 4.6566129e-10f * 8.0f;
    }
    for (int i = 0; i < 2; i++) {
        const uint32_t at = seed + 3000 + thread * 2 + i;
        h[i] = half_of(mixed(at)) | half_of(mixed(at ^ 0x9e3779b9u)) << 16;
    }
    asm volatile("fence.proxy.async;" ::: "memory");
    __syncthreads();
    const uint64_t left = descriptor(a), right = descriptor(b);
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    if (kind == 0 || kind == 2) SINGLES("e4m3");
    if (kind == 1 || kind == 3) SINGLES("e5m2");
    if (kind == 4) HALVES("e4m3");
    if (kind == 5) HALVES("e5m2");
    asm volatile("wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;" ::: "memory");
    for (int i = 0; i < 4; i++)
        out[thread * 4 + i] = kind < 4 ? __float_as_uint(d[i]) : i < 2 ? h[i] : 0;
}

int main() {
    const char* names[] = {"e4m3 any", "e5m2 any", "e4m3 zeros", "e5m2 zeros", "e4m3 half", "e5m2 half"};
    uint32_t *out, words[512];
    cudaMalloc(&out, sizeof words);
    for (int kind = 0; kind < 6; kind++) {
        products<<<1, 128>>>(kind, out);
        if (cudaMemcpy(words, out, sizeof words, cudaMemcpyDeviceToHost) != cudaSuccess) return 1;
        printf("wgmma %s\n", names[kind]);
        for (int i = 0; i < 512; i++) printf("%08x%c", words[i], i % 16 == 15 ? '\n' : ' ');
    }
}
