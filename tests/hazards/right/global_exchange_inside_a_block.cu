// Threads of a block exchange through global memory: the block's barrier orders that too.
//@ launch kernel grid 3 block 64
//@ arg x i32[192] input arange
//@ arg s i32[192] scratch
//@ arg y i32[192] output
//@ expect y = reverse_blocks(x, 64)
extern "C" __global__ void kernel(const int* x, int* s, int* y) {
    int* own = s + blockIdx.x * 64;
    int t = threadIdx.x, v = x[blockIdx.x * 64 + t];
    for (int i = 0; i < 5; ++i) {
        own[t] = v;
        __syncthreads();
        v = own[63 - t];
        __syncthreads();
    }
    y[blockIdx.x * 64 + t] = v;
}
