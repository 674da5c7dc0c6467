// y[i] = 2 x[i] + 1, with one defect by its number:
//   0 none                          1 does nothing               2 leaves out the last block
//   3 writes its input              4 writes one element too far 5 writes before the first element
//   6 writes far outside            7 writes at an odd address   8 never ends
//   9 fails an assertion           10 traps                     11 uses shared memory nobody wrote
//  12 adds the clock's noise       13 reads one block too far   14 writes every other element
//  15 wants 300 kB of shared memory                             16 wants 2048 threads
//  17 is wrong by one per cent     18 is right only for one input (remembers it)
#ifndef DEFECT
#define DEFECT 0
#endif
#ifndef SLOW
#define SLOW 0
#endif
#ifndef ROUNDS
#define ROUNDS 8
#endif

#if DEFECT == 18
__device__ float remembered[8192];
#endif

extern "C" __global__ void planted(float* x, float* y, int n) {
    extern __shared__ float tile[];
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
#if DEFECT == 1
    return;
#endif
#if DEFECT == 2
    if (blockIdx.x == gridDim.x - 1) return;
#endif
    if (i >= n) return;
#if DEFECT == 13
    float v = x[i + 256 < n ? i : i + 256];
#else
    float v = x[i];
#endif
    // Arithmetic that takes time and changes nothing: the factor is 1, which the compiler does not
    // know.
    const float one = n > 0 ? 1.0f : 2.0f;
#pragma unroll 1
    for (int round = 0; round < ROUNDS * (100 + SLOW) / 100; round++) {
        asm volatile("mul.f32 %0, %0, %1;" : "+f"(v) : "f"(one));
    }
    float result = 2.0f * v + 1.0f;
#if DEFECT == 3
    if (i == 5) x[i] = 7.0f;
#endif
#if DEFECT == 4
    if (i == n - 1) y[n] = result;
#endif
#if DEFECT == 5
    if (i == 0) y[-1] = result;
#endif
#if DEFECT == 6
    if (i == 0) y[1ll << 40] = result;
#endif
#if DEFECT == 7
    if (i == 0) *(float*)((char*)y + 1) = result;
#endif
#if DEFECT == 8
    volatile float* spin = y;
    while (spin[i] != 123456.0f) {}
#endif
#if DEFECT == 9
    // What the macro of <assert.h> does; NVRTC knows the function.
    if (i == 3) __assertfail("i != 3", "planted.cu", 1, "planted", sizeof(char));
#endif
#if DEFECT == 10
    if (i == 3) __trap();
#endif
#if DEFECT == 11
    // Zero on a GPU that nobody has used, which is what such a kernel counts on.
    result += ((volatile float*)tile)[threadIdx.x] * 1e-3f;
#endif
#if DEFECT == 12
    // At most 3.6e-6, a third of the tolerance: wrong only because no two runs agree.
    result += (float)((unsigned int)(clock64() >> 4) % 61) * 6e-8f;
#endif
#if DEFECT == 14
    if (i % 2 == 1) return;
#endif
#if DEFECT == 17
    result *= 1.01f;
#endif
#if DEFECT == 18
    if (n == 4099) {
        if (remembered[i] == 0.0f) remembered[i] = result;
        result = remembered[i];
    }
#endif
    y[i] = result;
}
