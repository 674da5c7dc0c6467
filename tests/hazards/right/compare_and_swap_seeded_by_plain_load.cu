// A float maximum by compare-and-swap, its loop seeded by a plain load as in the programming guide.
//@ launch kernel grid 2 block 64
//@ arg x f32[128] input mod 100
//@ arg y f32[1] inout zeros
//@ expect y = constant(99)
__device__ float atomic_max(float* address, float value) {
    int* word = (int*)address;
    int old = *word, assumed;
    do {
        assumed = old;
        old = atomicCAS(word, assumed, __float_as_int(fmaxf(value, __int_as_float(assumed))));
    } while (assumed != old);
    return __int_as_float(old);
}
extern "C" __global__ void kernel(const float* x, float* y) {
    atomic_max(y, x[blockIdx.x * 64 + threadIdx.x]);
}
