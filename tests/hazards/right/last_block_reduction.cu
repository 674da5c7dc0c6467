// The last-block reduction of the CUDA programming guide: fence, ticket, and the last block adds up.
//@ launch kernel grid 6 block 64
//@ arg x f32[384] input mod 17
//@ arg partial f32[6] scratch
//@ arg count u32[1] inout zeros
//@ arg y f32[1] output
//@ expect y = sum(x)
extern "C" __global__ void kernel(const float* x, volatile float* partial, unsigned* count, float* y) {
    __shared__ float s[64];
    __shared__ bool last;
    int t = threadIdx.x;
    s[t] = x[blockIdx.x * 64 + t];
    __syncthreads();
    for (int d = 32; d > 0; d /= 2) {
        if (t < d) s[t] += s[t + d];
        __syncthreads();
    }
    if (t == 0) {
        partial[blockIdx.x] = s[0];
        __threadfence();
        last = atomicInc(count, gridDim.x) == gridDim.x - 1;
    }
    __syncthreads();
    if (last) {
        if (t == 0) {
            float sum = 0.0f;
            for (int i = 0; i < gridDim.x; ++i) sum += partial[i];
            y[0] = sum;
            *count = 0;
        }
    }
}
