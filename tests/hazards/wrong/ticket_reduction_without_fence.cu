// The last-block reduction without the fence between the partial sum and the ticket.
//@ verdict race
//@ launch kernel grid 4 block 64
//@ arg x f32[256] input arange
//@ arg partial f32[4] scratch
//@ arg count u32[1] inout zeros
//@ arg y f32[1] output
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
        partial[blockIdx.x] = s[0]; // CONFLICT
        last = atomicInc(count, gridDim.x - 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (last && t == 0) {
        float sum = 0.0f;
        for (int i = 0; i < 4; ++i) sum += partial[i]; // HAZARD
        y[0] = sum;
    }
}
