// Bits are set in shared words that nobody cleared.
//@ verdict uninitialized
//@ launch kernel grid 1 block 32
//@ arg x i32[32] input mod 31
//@ arg y u32[32] output
extern "C" __global__ void kernel(const int* x, unsigned* y) {
    __shared__ unsigned s[32];
    int t = threadIdx.x;
    s[t] |= 1u << x[t]; // HAZARD
    __syncthreads();
    y[t] = s[31 - t];
}
