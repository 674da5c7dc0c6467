// The same bytes hold integers, then floats, with a barrier between the two lives.
//@ launch kernel grid 1 block 64
//@ arg x i32[64] input mod 64
//@ arg y f32[64] output
//@ expect y = scale(x, 0.5)
extern "C" __global__ void kernel(const int* x, float* y) {
    __shared__ __align__(8) unsigned char bytes[256];
    int t = threadIdx.x;
    int* ints = (int*)bytes;
    float* floats = (float*)bytes;
    ints[t] = x[t];
    __syncthreads();
    int v = ints[63 - t];
    __syncthreads();
    floats[63 - t] = v * 0.5f;
    __syncthreads();
    y[t] = floats[t];
}
