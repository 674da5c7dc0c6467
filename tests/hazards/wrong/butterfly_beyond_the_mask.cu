// Half a warp adds up with a first step that reaches into the other half.
//@ verdict uninitialized
//@ launch kernel grid 1 block 32
//@ arg x i32[32] input arange
//@ arg y i32[32] output
extern "C" __global__ void kernel(const int* x, int* y) {
    int t = threadIdx.x, v = x[t];
    if (t < 16) {
        #pragma unroll
        for (int d = 16; d > 0; d /= 2) v += __shfl_xor_sync(0x0000ffffu, v, d); // HAZARD
    }
    y[t] = v;
}
