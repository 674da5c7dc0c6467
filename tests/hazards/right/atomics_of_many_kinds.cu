// Add, min, max, or, exchange and compare-and-swap mixed on the same words, all atomic.
//@ launch kernel grid 4 block 64
//@ arg x i32[256] input arange
//@ arg y i32[6] inout zeros
//@ expect y = atomics_of_many_kinds(x)
extern "C" __global__ void kernel(const int* x, int* y) {
    int v = x[blockIdx.x * 64 + threadIdx.x];
    atomicAdd(&y[0], v);
    atomicMax(&y[1], v);
    atomicMin(&y[2], -v);
    atomicOr(&y[3], v);
    atomicXor(&y[4], v);
    int old = atomicAdd(&y[5], 0), seen;
    do {
        seen = old;
        old = atomicCAS(&y[5], seen, seen + 1);
    } while (old != seen);
}
