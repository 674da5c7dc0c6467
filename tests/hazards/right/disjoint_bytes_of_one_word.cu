// Four threads write the four bytes of one word, in shared and in global memory.
//@ launch kernel grid 1 block 128
//@ arg x u8[128] input arange
//@ arg y u8[128] output
//@ expect y = reverse_blocks(x, 4)
extern "C" __global__ void kernel(const unsigned char* x, unsigned char* y) {
    __shared__ unsigned char s[128];
    int t = threadIdx.x;
    s[t ^ 3] = x[t];
    y[t] = *(volatile unsigned char*)&s[t ^ 3] * 0 + x[t ^ 3];
}
