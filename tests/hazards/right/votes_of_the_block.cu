// __syncthreads_count, _and and _or are barriers too: shared data passes over them.
//@ launch kernel grid 1 block 96
//@ arg x i32[96] input mod 3
//@ arg y i32[96] output
//@ expect y = constant(65)
extern "C" __global__ void kernel(const int* x, int* y) {
    __shared__ int s[96];
    int t = threadIdx.x;
    s[t] = x[t];
    int zeros = __syncthreads_count(s[t] == 0);
    int v = s[95 - t];
    int all = __syncthreads_and(v >= 0);
    s[t] = v + 1;
    int any = __syncthreads_or(v == 2);
    y[t] = zeros + 32 * all * any + (s[(t + 1) % 96] > 0);
}
