// Blocks write interleaved elements of the same cache line.
//@ launch kernel grid 4 block 32
//@ arg x i32[128] input arange
//@ arg y i32[128] output
//@ expect y = scale(x, 5)
extern "C" __global__ void kernel(const int* x, int* y) {
    int i = threadIdx.x * 4 + blockIdx.x;
    y[i] = 5 * x[i];
}
