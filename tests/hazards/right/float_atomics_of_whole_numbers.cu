// Float atomics on whole numbers: every order gives the same sum.
//@ launch kernel grid 2 block 64
//@ arg x f32[128] input mod 8
//@ arg y f32[1] inout zeros
//@ expect y = sum(x)
extern "C" __global__ void kernel(const float* x, float* y) {
    atomicAdd(&y[0], x[blockIdx.x * 64 + threadIdx.x]);
}
