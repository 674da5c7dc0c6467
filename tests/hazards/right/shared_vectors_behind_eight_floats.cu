// Vectors in an array of floats that lies 32 bytes behind another one.
//@ launch kernel grid 1 block 32
//@ arg x f32[128] input arange
//@ arg y f32[128] output
//@ expect y = repeated(x)
extern "C" __global__ void kernel(const float4* x, float* y) {
    __shared__ float head[8];
    __shared__ float tile[128];
    if (threadIdx.x < 8) head[threadIdx.x] = 0.0f;
    ((float4*)tile)[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    for (int i = threadIdx.x; i < 128; i += 32) y[i] = tile[i] + head[i % 8];
}
