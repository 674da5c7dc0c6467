// A relaxation that goes on until no thread of the block changed anything.
//@ launch kernel grid 1 block 96
//@ arg x i32[96] input arange
//@ arg y i32[96] output
//@ expect y = constant(95)
extern "C" __global__ void kernel(const int* x, int* y) {
    __shared__ int s[2][96];
    int t = threadIdx.x, from = 0, changed = 1;
    s[0][t] = x[t];
    __syncthreads();
    while (changed) {
        int mine = s[from][t], next = t < 95 ? s[from][t + 1] : mine;
        s[1 - from][t] = max(mine, next);
        changed = __syncthreads_or(next > mine);
        from = 1 - from;
    }
    y[t] = s[from][t];
}
