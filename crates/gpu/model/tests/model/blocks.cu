// Blocks that differ in their work, and blocks that stream. Compiled for sm_80 with line numbers:
// blocks.ptx and blocks.cubin are what NVRTC 13.0 made of it.

// As in causal attention: the way of a block is as long as its tile's index, from either end.
extern "C" __global__ void triangle(const float *a, float *b, int tiles, int reverse) {
    int tile = reverse ? tiles - 1 - (int)blockIdx.x % tiles : (int)blockIdx.x % tiles;
    float sum = a[threadIdx.x];
    for (int i = 0; i < (tile + 1) * 64; i++) {
        sum = fmaf(sum, 1.0001f, 0.5f);
    }
    b[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

// A copy, and one through a tile without padding.
extern "C" __global__ void copy(const float *a, float *b, int width) {
    int at = (blockIdx.y * 32 + threadIdx.y) * width + blockIdx.x * 32 + threadIdx.x;
    for (int i = 0; i < 32; i += 8) {
        b[at + i * width] = a[at + i * width];
    }
}

extern "C" __global__ void turn(const float *a, float *b, int width) {
    __shared__ float tile[32][32];
    int x = blockIdx.x * 32, y = blockIdx.y * 32;
    for (int i = 0; i < 32; i += 8) {
        tile[threadIdx.y + i][threadIdx.x] = a[(y + threadIdx.y + i) * width + x + threadIdx.x];
    }
    __syncthreads();
    for (int i = 0; i < 32; i += 8) {
        b[(x + threadIdx.y + i) * width + y + threadIdx.x] = tile[threadIdx.x][threadIdx.y + i];
    }
}

// A product of 64 x 64 tiles whose blocks are numbered along one axis, in groups of rows.
extern "C" __global__ void strips(const float *a, const float *b, float *c, int n, int group) {
    int tiles = n / 64, block = blockIdx.x;
    int band = block / (group * tiles), within = block % (group * tiles);
    int row = band * group + within % group, col = within / group;
    float sum = 0.0f;
    for (int k = 0; k < n; k++) {
        sum += a[k * n + row * 64 + threadIdx.x] * b[k * n + col * 64 + threadIdx.x];
    }
    c[(row * 64 + threadIdx.x) * n + col * 64 + threadIdx.x] = sum;
}
