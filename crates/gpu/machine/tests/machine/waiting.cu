// Compiled as forms.cu is, for sm_89. Blocks meet at a word, in the way of cooperative groups, and read what the others left.
extern "C" __global__ void waiting(const float *x, unsigned *word, float *sums, float *y) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (threadIdx.x == 0) {
        sums[blockIdx.x] = x[i];
        __threadfence();
        atomicAdd(word, 1);
        while (*(volatile unsigned *)word < gridDim.x) {}
    }
    __syncthreads();
    y[i] = x[i] - ((volatile float *)sums)[gridDim.x - 1 - blockIdx.x];
}
