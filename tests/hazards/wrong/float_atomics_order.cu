// The order of float additions through atomics decides the last bits.
//@ verdict nondeterministic
//@ launch kernel grid 1 block 256
//@ arg x f32[256] input normal
//@ arg y f32[1] inout zeros
extern "C" __global__ void kernel(const float* x, float* y) {
    atomicAdd(&y[0], x[threadIdx.x]);
}
