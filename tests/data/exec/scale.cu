// Two kernels without a host program: tests launch the PTX that nvcc makes of this file.
#define BLOCK 128

__constant__ float offset;

__global__ void scale(const float* x, float* y, int n, float factor)
{
    __shared__ float tile[BLOCK];
    int i = blockIdx.x * BLOCK + threadIdx.x;
    tile[threadIdx.x] = i < n ? x[i] : 0.0f;
    __syncthreads();
    if (i < n) y[i] = factor * tile[threadIdx.x] + offset;
}

__global__ void bump(int* counts, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) counts[i] += 1;
}
