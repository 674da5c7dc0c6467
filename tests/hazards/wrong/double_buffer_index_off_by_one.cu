// Double buffering with one barrier a step: the store goes into the buffer that other warps are reading.
//@ verdict race
//@ launch kernel grid 1 block 128
//@ arg x f32[1024] input arange
//@ arg y f32[128] output
extern "C" __global__ void kernel(const float* x, float* y) {
    __shared__ float buffer[2][128];
    int t = threadIdx.x;
    float sum = 0.0f;
    buffer[0][t] = x[t];
    buffer[1][t] = x[t];
    __syncthreads();
    for (int i = 0; i < 8; ++i) {
        float next = i + 1 < 8 ? x[(i + 1) * 128 + t] : 0.0f;
        float v = buffer[i & 1][127 - t]; // CONFLICT
        sum += v;
        buffer[i & 1][t] = next; // HAZARD
        __syncthreads();
    }
    y[t] = sum;
}
