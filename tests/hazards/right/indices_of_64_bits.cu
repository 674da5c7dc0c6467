// Index arithmetic in 64 bits, with signed offsets back and forth.
//@ launch kernel grid 2 block 64
//@ arg x i64[128] input arange
//@ arg y i64[128] output
//@ arg far i64 4294967296
//@ expect y = scale(x, 3)
extern "C" __global__ void kernel(const long long* x, long long* y, long long far) {
    long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    long long j = i * far / far;
    y[i] = (x + far)[j - far] * 3;
}
