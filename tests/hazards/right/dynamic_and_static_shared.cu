// Static and dynamic shared memory side by side, each filled to its last byte.
//@ launch kernel grid 1 block 64 shared 256
//@ arg x f32[64] input arange
//@ arg y f32[64] output
//@ expect y = scale(x, 2)
extern "C" __global__ void kernel(const float* x, float* y) {
    __shared__ float a[64];
    extern __shared__ float b[];
    int t = threadIdx.x;
    a[63 - t] = x[t];
    b[t] = x[t];
    __syncthreads();
    y[t] = a[63 - t] + b[t];
}
