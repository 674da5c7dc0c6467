// Loops that the assembler unrolls, merges and duplicates. Compiled for sm_80 with line numbers:
// loops.ptx and loops.cubin are what NVRTC 13.0 made of it.

// Coulomb potential on a grid: four points along z a thread, the loop over atoms unrolled by eight.
extern "C" __global__ void coulomb(const float4 *__restrict__ atoms, int count, float spacing,
                                   float *energy) {
    const int x = blockIdx.x * blockDim.x + threadIdx.x;
    const int y = blockIdx.y * blockDim.y + threadIdx.y;
    const int width = gridDim.x * blockDim.x, height = gridDim.y * blockDim.y;
    float sum[4] = {0, 0, 0, 0};
#pragma unroll 8
    for (int i = 0; i < count; i++) {
        const float4 atom = atoms[i];
        const float dx = spacing * x - atom.x, dy = spacing * y - atom.y;
        const float plane = dx * dx + dy * dy;
#pragma unroll
        for (int k = 0; k < 4; k++) {
            const float dz = spacing * (blockIdx.z * 4 + k) - atom.z;
            sum[k] += atom.w * rsqrtf(plane + dz * dz);
        }
    }
#pragma unroll
    for (int k = 0; k < 4; k++) {
        energy[((blockIdx.z * 4 + k) * height + y) * width + x] = sum[k];
    }
}

// Dedispersion: tiles of three samples side by side (stride 0) by two measures a thread, of bytes;
// neither divides the number of samples.
extern "C" __global__ void dedisperse(const unsigned char *__restrict__ input,
                                      const float *__restrict__ delays, int channels, int samples,
                                      int pitch, float *output) {
    const int sample = (blockIdx.x * blockDim.x + threadIdx.x) * 3;
    const int measure = (blockIdx.y * blockDim.y + threadIdx.y) * 2;
    float sum[2][3] = {};
#pragma unroll 4
    for (int channel = 0; channel < channels; channel++) {
#pragma unroll
        for (int j = 0; j < 2; j++) {
            const int shift = (int)(delays[channel] * (measure + j));
#pragma unroll
            for (int i = 0; i < 3; i++) {
                if (sample + i < samples) {
                    sum[j][i] += input[channel * pitch + shift + sample + i];
                }
            }
        }
    }
#pragma unroll
    for (int j = 0; j < 2; j++) {
#pragma unroll
        for (int i = 0; i < 3; i++) {
            if (sample + i < samples) output[(measure + j) * samples + sample + i] = sum[j][i];
        }
    }
}

// A product of matrices in tiles of 64 by 64 by 8, 4 by 4 a thread: scalar loads from shared memory
// that the assembler merges into loads of 16 bytes.
extern "C" __global__ void tiled(const float *__restrict__ a, const float *__restrict__ b, int n,
                                 float *c) {
    __shared__ __align__(16) float left[8 * 64], right[8 * 64];
    const int t = threadIdx.x, row = t / 16, column = t % 16;
    float sum[4][4] = {};
    for (int step = 0; step < n; step += 8) {
        for (int k = t; k < 8 * 64; k += 256) {
            left[k] = a[(step + k / 64) * n + blockIdx.y * 64 + k % 64];
            right[k] = b[(step + k / 64) * n + blockIdx.x * 64 + k % 64];
        }
        __syncthreads();
        for (int k = 0; k < 8; k++) {
            float one[4], other[4];
#pragma unroll
            for (int i = 0; i < 4; i++) one[i] = left[k * 64 + row * 4 + i];
#pragma unroll
            for (int i = 0; i < 4; i++) other[i] = right[k * 64 + column * 4 + i];
#pragma unroll
            for (int i = 0; i < 16; i++) sum[i / 4][i % 4] += one[i / 4] * other[i % 4];
        }
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < 16; i++) {
        c[(blockIdx.y * 64 + row * 4 + i / 4) * n + blockIdx.x * 64 + column * 4 + i % 4] =
            sum[i / 4][i % 4];
    }
}

// One warp hands numbers to another through a barrier in shared memory, which the other asks in a loop.
extern "C" __global__ void handed(const float *__restrict__ from, float *to) {
    __shared__ unsigned long long bar;
    __shared__ float numbers[32];
    const unsigned at = (unsigned)__cvta_generic_to_shared(&bar);
    if (threadIdx.x == 0) asm volatile("mbarrier.init.shared.b64 [%0], 32;" ::"r"(at));
    __syncthreads();
    if (threadIdx.x >= 32) {
        float sum = 0;
        for (int i = 0; i < 300; i++) sum += from[i * 32 + threadIdx.x - 32];
        numbers[threadIdx.x - 32] = sum;
        asm volatile("{ .reg .b64 t; mbarrier.arrive.shared.b64 t, [%0]; }" ::"r"(at) : "memory");
    } else {
        unsigned done = 0;
        while (!done) {
            asm volatile("{ .reg .pred p; mbarrier.test_wait.parity.shared.b64 p, [%1], 0;"
                         " selp.u32 %0, 1, 0, p; }" : "=r"(done) : "r"(at) : "memory");
        }
        to[blockIdx.x * 32 + threadIdx.x] = numbers[threadIdx.x];
    }
}
