// A privatised histogram: shared atomics, then global atomics.
//@ launch kernel grid 3 block 128
//@ arg x i32[1000] input mod 37
//@ arg y i32[37] inout zeros
//@ arg n i32 1000
//@ expect y = histogram(x)
extern "C" __global__ void kernel(const int* x, int* y, int n) {
    __shared__ int bins[37];
    for (int i = threadIdx.x; i < 37; i += blockDim.x) bins[i] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) atomicAdd(&bins[x[i]], 1);
    __syncthreads();
    for (int i = threadIdx.x; i < 37; i += blockDim.x) atomicAdd(&y[i], bins[i]);
}
