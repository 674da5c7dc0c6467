// Only the low half of every word is written before the whole word is read.
//@ verdict uninitialized
//@ launch kernel grid 1 block 32
//@ arg x u16[32] input arange
//@ arg y u32[32] output
extern "C" __global__ void kernel(const unsigned short* x, unsigned* y) {
    __shared__ unsigned s[32];
    int t = threadIdx.x;
    ((volatile unsigned short*)s)[2 * t] = x[t];
    __syncthreads();
    unsigned v = s[31 - t]; // HAZARD
    y[t] = v;
}
