// As the last-block reduction, but all threads of every block publish and all of the last one read.
//@ launch kernel grid 4 block 64
//@ arg x f32[256] input mod 19
//@ arg partial f32[256] scratch
//@ arg count i32[1] inout zeros
//@ arg y f32[64] output
//@ expect y = column_sum(x, 64)
extern "C" __global__ void kernel(const float* x, float* partial, int* count, float* y) {
    __shared__ int ticket;
    int t = threadIdx.x;
    partial[blockIdx.x * 64 + t] = x[blockIdx.x * 64 + t];
    __threadfence();
    __syncthreads();
    if (t == 0) ticket = atomicAdd(count, 1);
    __syncthreads();
    if (ticket == gridDim.x - 1) {
        __threadfence();
        float sum = 0.0f;
        for (int b = 0; b < gridDim.x; ++b) sum += partial[b * 64 + t];
        y[t] = sum;
    }
}
