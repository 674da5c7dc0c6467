// A loop that the assembler unrolls by four, with a barrier on each side of the shared loads.
extern "C" __global__ void unrolled(const float *__restrict__ a, float *b, int n) {
    __shared__ float s[256];
    int i = blockIdx.x * 256 + threadIdx.x;
    float sum = 0;
    for (int k = 0; k < n; k++) {
        s[threadIdx.x] = a[i + k * 1024];
        __syncthreads();
        sum = fmaf(s[threadIdx.x ^ 1], s[(threadIdx.x + 5) & 255], sum);
        __syncthreads();
    }
    if (i < 1000) b[i] = sum;
}
