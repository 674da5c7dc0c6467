// Vectors in dynamic memory behind an array of 20 bytes: ptxas aligns dynamic memory to 16 bytes at least.
//@ launch kernel grid 1 block 32 shared 512
//@ arg x f32[128] input arange
//@ arg y f32[128] output
//@ expect y = repeated(x)
extern "C" __global__ void kernel(const float4* x, float* y) {
    __shared__ float head[5];
    extern __shared__ float tile[];
    if (threadIdx.x < 5) head[threadIdx.x] = 0.0f;
    ((float4*)tile)[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    for (int i = threadIdx.x; i < 128; i += 32) y[i] = tile[i] + head[i % 5];
}
