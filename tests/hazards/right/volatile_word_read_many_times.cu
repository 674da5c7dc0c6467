// A loop that looks as if it waited: it reads one volatile word again and again, and counts how often.
//@ launch kernel grid 1 block 32
//@ arg word i32[1] input zeros
//@ arg x f32[32] input arange
//@ arg y f32[32] output
//@ expect y = copy(x)
extern "C" __global__ void kernel(volatile int* word, const float* x, float* y) {
    int sum = 0;
#pragma unroll 1
    for (int i = 0; i < 20000; ++i) sum |= *word;
    y[threadIdx.x] = x[threadIdx.x] + sum;
}
