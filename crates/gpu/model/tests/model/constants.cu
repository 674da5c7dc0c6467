// A table in constant memory: read at places that lanes work out, and by operands.
__constant__ float table[12288];

extern "C" __global__ void lanes(float *out, int n, int span, int apart) {
    float sum = 0;
    int lane = threadIdx.x % 32 * apart;
    for (int i = 0; i < n; ++i) sum += table[i * 7 + lane & span - 1];
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

#define EIGHT(at) x = x * table[at] + table[at + 1]; y = y * table[at + 2] + table[at + 3]; \
    x = x * table[at + 4] + table[at + 5]; y = y * table[at + 6] + table[at + 7];
#define LINES(at) EIGHT(at) EIGHT(at + 16) EIGHT(at + 32) EIGHT(at + 48)
#define MORE(at) LINES(at) LINES(at + 64) LINES(at + 128) LINES(at + 192)

extern "C" __global__ void few(float *out, int n) {
    float x = threadIdx.x, y = blockIdx.x;
    for (int i = 0; i < n; ++i) { MORE(0) MORE(0) MORE(0) MORE(0) }
    out[blockIdx.x * blockDim.x + threadIdx.x] = x + y;
}

extern "C" __global__ void many(float *out, int n) {
    float x = threadIdx.x, y = blockIdx.x;
    for (int i = 0; i < n; ++i) { MORE(0) MORE(256) MORE(512) MORE(768) }
    out[blockIdx.x * blockDim.x + threadIdx.x] = x + y;
}
