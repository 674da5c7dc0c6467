// The second launch reads through the read-only cache what the first has written.
//@ launch kernel grid 2 block 64
//@ launch finish grid 2 block 64
//@ arg x i32[128] input arange
//@ arg s i32[128] scratch
//@ arg y i32[128] output
//@ expect y = rotate(x, 5)
extern "C" __global__ void kernel(const int* x, int* s, int* y) {
    int i = blockIdx.x * 64 + threadIdx.x;
    s[i] = x[i];
}
extern "C" __global__ void finish(const int* x, int* s, int* y) {
    int i = blockIdx.x * 64 + threadIdx.x;
    y[i] = __ldg(&s[(i + 5) % 128]);
}
