// Every block adds its sum to the same total with a plain load and store.
//@ verdict race
//@ launch kernel grid 4 block 32
//@ arg x f32[128] input arange
//@ arg y f32[1] inout zeros
extern "C" __global__ void kernel(const float* x, float* y) {
    float v = x[blockIdx.x * 32 + threadIdx.x];
    for (int d = 16; d > 0; d /= 2) v += __shfl_xor_sync(0xffffffffu, v, d);
    if (threadIdx.x == 0) y[0] += v; // HAZARD
}
