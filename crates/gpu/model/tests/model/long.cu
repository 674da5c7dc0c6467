// Blocks that run as long as a number says.
extern "C" __global__ void sum(const float *__restrict__ x, float *__restrict__ out, int n) {
    float s = 0;
    for (int i = threadIdx.x; i < n; i += blockDim.x) s += x[i];
    __shared__ float part[256];
    part[threadIdx.x] = s;
    __syncthreads();
    for (int w = 128; w; w >>= 1) {
        if (threadIdx.x < w) part[threadIdx.x] += part[threadIdx.x + w];
        __syncthreads();
    }
    if (threadIdx.x == 0) out[blockIdx.x] = part[0];
}

// The same work for half of n; beyond, other instructions.
extern "C" __global__ void turns(const float *__restrict__ x, float *__restrict__ out, int n) {
    float s = 0;
    for (int i = threadIdx.x; i < n; i += blockDim.x) s = i < 10000000 ? s + x[i] : rsqrtf(s) * x[i];
    out[blockIdx.x * blockDim.x + threadIdx.x] = s;
}

// Work that grows with the square of n.
extern "C" __global__ void square(const float *__restrict__ x, float *__restrict__ out, int n) {
    float s = 0;
    for (int i = 0; i < n; ++i)
        for (int j = 0; j < i; ++j) s = s * 0.5f + x[j];
    out[blockIdx.x * blockDim.x + threadIdx.x] = s;
}

// Whole tiles: less than one takes as long as one.
extern "C" __global__ void tiles(const float *__restrict__ x, float *__restrict__ out, int n) {
    __shared__ float tile[256];
    float s = 0;
    for (int t = 0; t < n; t += 256) {
        tile[threadIdx.x] = x[t + threadIdx.x];
        __syncthreads();
        for (int j = 0; j < 256; ++j) s = s * 0.5f + tile[j];
        __syncthreads();
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = s;
}
