// 70 threads: the last warp has six lanes, shuffles and barriers included.
//@ launch kernel grid 2 block 70
//@ arg x i32[140] input arange
//@ arg y i32[140] output
//@ expect y = reverse_blocks(x, 70)
extern "C" __global__ void kernel(const int* x, int* y) {
    __shared__ int s[70];
    int t = threadIdx.x, i = blockIdx.x * 70 + t;
    int v = __shfl_sync(__activemask(), x[i], t % 32);
    s[t] = v;
    __syncthreads();
    y[i] = s[69 - t];
}
