// Double buffering with one barrier a step: the store goes to the buffer nobody reads.
//@ launch kernel grid 1 block 128
//@ arg x f32[1024] input mod 29
//@ arg y f32[128] output
//@ expect y = column_sum(x, 128)
extern "C" __global__ void kernel(const float* x, float* y) {
    __shared__ float buffer[2][128];
    int t = threadIdx.x;
    float sum = 0.0f;
    buffer[0][t] = x[t];
    __syncthreads();
    for (int i = 0; i < 8; ++i) {
        float next = i + 1 < 8 ? x[(i + 1) * 128 + t] : 0.0f;
        sum += buffer[i & 1][127 - t];
        if (i + 1 < 8) buffer[(i + 1) & 1][t] = next;
        __syncthreads();
    }
    y[127 - t] = sum;
}
