// Template arguments that the host computes from the threads of a block, and the other way round.
#include <algorithm>

template <int WARPS, typename T>
__global__ void row_sum(const T* x, T* y, int n) {
    __shared__ T part[WARPS];
    T sum = 0;
    for (int i = threadIdx.x; i < n; i += blockDim.x) sum += x[blockIdx.x * n + i];
    for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_down_sync(~0u, sum, offset);
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = sum;
    __syncthreads();
    for (int w = 1; threadIdx.x == 0 && w < WARPS; w++) part[0] += part[w];
    if (threadIdx.x == 0) y[blockIdx.x] = part[0];
}

template <int ITEMS>
__global__ void fill(float* y, int n) {
    int base = blockIdx.x * blockDim.x * ITEMS + threadIdx.x;
    for (int k = 0; k < ITEMS; k++)
        if (base + k * blockDim.x < n) y[base + k * blockDim.x] = k;
}

template <int HALF>
__global__ void least(float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = HALF;
}

template <int RANKS>
__global__ void ranked(float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = RANKS;
}

void run(const float* x, float* y, int rows) {
    int n = 1000;
    constexpr int threads = 256, warps = threads / 32;
    row_sum<warps><<<rows, threads>>>(x, y, n);
}

void run_others(float* y) {
    int n = 100000;
    constexpr int block = 128;
    fill<1024 / block><<<(n + 1023) / 1024, block>>>(y, n);
    constexpr int size = 64;
    least<std::max(1, size / 2)><<<(n + size - 1) / size, size>>>(y, n);
    constexpr int ranks = 8;
    constexpr int all = ranks * 32;
    ranked<ranks><<<(n + all - 1) / all, all>>>(y, n);
}
