// __syncthreads_count, _and and _or.
//@ launch kernel grid 1 block 96
//@ arg x i32[96] input arange
//@ arg y i32[96] output
//@ expect y = constant(4911)
extern "C" __global__ void kernel(const int* x, int* y) {
    int v = x[threadIdx.x];
    int count = __syncthreads_count(v % 2);
    int all = __syncthreads_and(v < 96);
    int any = __syncthreads_or(v == 95);
    y[threadIdx.x] = count * 100 + 100 + all * 10 + any;
}
