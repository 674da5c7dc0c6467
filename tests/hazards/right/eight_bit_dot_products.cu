// __dp4a and byte permutation.
//@ launch kernel grid 1 block 32
//@ arg x i32[32] input arange
//@ arg y i32[32] output
//@ expect y = mapped(x, dp4a_of_itself)
extern "C" __global__ void kernel(const int* x, int* y) {
    int v = x[threadIdx.x];
    int four = __byte_perm(v, 0, 0x0000);
    y[threadIdx.x] = __dp4a(four, four, 1);
}
