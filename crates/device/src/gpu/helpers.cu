// Kernels of the tuner's own: they prepare the GPU for a run, stamp its clocks, and probe what it
// can do. Compiled by NVRTC for the GPU at hand, like every candidate.

typedef unsigned int u32;
typedef unsigned long long u64;

__device__ __forceinline__ u64 nanoseconds() {
    u64 time;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(time));
    return time;
}

// Fills a block's whole shared memory with NaN (of every floating-point type), so that a kernel
// that reads what it did not write shows it.
extern "C" __global__ void tuner_poison_shared(u32 words) {
    extern __shared__ u32 memory[];
    volatile u32* all = memory;
    for (u32 i = threadIdx.x; i < words; i += blockDim.x) all[i] = 0xffffffffu;
    // Stay a little, so that the next block goes to another multiprocessor.
    const u64 begin = nanoseconds();
    while (nanoseconds() - begin < 2000) {}
}

// The clock and the time of multiprocessor 0: two of them tell the clock rate between. Of several
// blocks there, the first to leave the ticket writes both.
extern "C" __global__ void tuner_stamp(u64* out, u64 ticket) {
    u32 sm;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
    if (sm != 0 || threadIdx.x != 0) return;
    if (atomicExch(out + 2, ticket) == ticket) return;
    u64 cycles;
    asm volatile("mov.u64 %0, %%clock64;" : "=l"(cycles));
    out[0] = cycles;
    out[1] = nanoseconds();
}

// Keeps the stream busy while the host queues what is to be timed behind it.
extern "C" __global__ void tuner_spin(u32 duration) {
    const u64 begin = nanoseconds();
    while (nanoseconds() - begin < duration) {}
}

extern "C" __global__ void tuner_null() {}

extern "C" __global__ void tuner_copy(const uint4* from, uint4* to, u64 count) {
    const u64 stride = (u64)gridDim.x * blockDim.x;
    for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += stride) to[i] = from[i];
}

// Reads what the second-level cache holds, past the first level.
extern "C" __global__ void tuner_read(const uint4* from, u32* to, u64 count, u32 rounds) {
    const u64 stride = (u64)gridDim.x * blockDim.x;
    u32 sum = 0;
    for (u32 round = 0; round < rounds; round++) {
        for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += stride) {
            u32 a, b, c, d;
            asm volatile("ld.global.cg.v4.u32 {%0, %1, %2, %3}, [%4];"
                         : "=r"(a), "=r"(b), "=r"(c), "=r"(d) : "l"(from + i));
            sum ^= a ^ b ^ c ^ d;
        }
    }
    if (sum == 0x12345678u) to[0] = sum;
}

// 8 chains of 16 multiply-adds a round: 256 operations a thread.
extern "C" __global__ void tuner_single(float* to, u32 rounds) {
    float chain[8];
    const float factor = 1.0f + 1e-9f * threadIdx.x;
    for (int i = 0; i < 8; i++) chain[i] = 1e-3f * (threadIdx.x + i);
    for (u32 round = 0; round < rounds; round++) {
#pragma unroll
        for (int step = 0; step < 16; step++) {
#pragma unroll
            for (int i = 0; i < 8; i++) chain[i] = fmaf(chain[i], factor, 0.5f);
        }
    }
    float sum = 0;
    for (int i = 0; i < 8; i++) sum += chain[i];
    if (sum == 12345.678f) to[0] = sum;
}

// 8 accumulators, 4 products each a round: 32 matrix products a warp.
extern "C" __global__ void tuner_tensor(float* to, u32 rounds) {
    float sums[8][4];
    for (int i = 0; i < 8; i++)
        for (int j = 0; j < 4; j++) sums[i][j] = 0;
    // Halves near 1e-3: the sums stay finite.
    const u32 a = 0x14001400u + threadIdx.x % 3, b = 0x14001400u + threadIdx.x % 5;
    for (u32 round = 0; round < rounds; round++) {
#pragma unroll
        for (int step = 0; step < 4; step++) {
#pragma unroll
            for (int i = 0; i < 8; i++) {
#if __CUDA_ARCH__ >= 800
                asm volatile(
                    "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
                    "{%0, %1, %2, %3}, {%4, %4, %4, %4}, {%5, %5}, {%0, %1, %2, %3};"
                    : "+f"(sums[i][0]), "+f"(sums[i][1]), "+f"(sums[i][2]), "+f"(sums[i][3])
                    : "r"(a), "r"(b));
#else
                asm volatile(
                    "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 "
                    "{%0, %1, %2, %3}, {%4, %4}, {%5}, {%0, %1, %2, %3};"
                    : "+f"(sums[i][0]), "+f"(sums[i][1]), "+f"(sums[i][2]), "+f"(sums[i][3])
                    : "r"(a), "r"(b));
#endif
            }
        }
    }
    float sum = 0;
    for (int i = 0; i < 8; i++)
        for (int j = 0; j < 4; j++) sum += sums[i][j];
    if (sum == 12345.678f) to[0] = sum;
}
