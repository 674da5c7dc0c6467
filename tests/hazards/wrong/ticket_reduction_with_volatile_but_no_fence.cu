// Volatile partial sums and an atomic ticket: volatile is no fence.
//@ verdict race
//@ launch kernel grid 4 block 32
//@ arg x f32[128] input arange
//@ arg partial f32[4] scratch
//@ arg count u32[1] inout zeros
//@ arg y f32[1] output
extern "C" __global__ void kernel(const float* x, volatile float* partial, unsigned* count, float* y) {
    float v = x[blockIdx.x * 32 + threadIdx.x];
    for (int d = 16; d > 0; d /= 2) v += __shfl_xor_sync(0xffffffffu, v, d);
    if (threadIdx.x == 0) {
        partial[blockIdx.x] = v; // CONFLICT
        if (atomicAdd(count, 1u) == 3u) {
            float sum = 0.0f;
            for (int i = 0; i < 4; ++i) sum += partial[i]; // HAZARD
            y[0] = sum;
        }
    }
}
