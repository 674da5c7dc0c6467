// Bytes are written one by one, and read as words after the barrier.
//@ launch kernel grid 1 block 64
//@ arg x u8[64] input arange
//@ arg y u32[16] output
//@ expect y = little_endian_words(x)
extern "C" __global__ void kernel(const unsigned char* x, unsigned* y) {
    __shared__ __align__(4) unsigned char s[64];
    int t = threadIdx.x;
    s[t] = x[t];
    __syncthreads();
    if (t < 16) y[t] = ((const unsigned*)s)[t];
}
