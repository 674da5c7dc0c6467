// A thread waits a number of cycles before it copies: time passes whatever the clock begins with.
//@ launch kernel grid 2 block 32
//@ arg x i32[64] input arange
//@ arg y i32[64] output
//@ expect y = copy(x)
extern "C" __global__ void kernel(const int* x, int* y) {
    long long start = clock64();
    while (clock64() - start < 2000) {}
    y[blockIdx.x * 32 + threadIdx.x] = x[blockIdx.x * 32 + threadIdx.x];
}
