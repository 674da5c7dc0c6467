// Volatile shared memory with the __syncwarp between the reads and the writes of each step.
//@ launch kernel grid 2 block 32
//@ arg x i32[64] input arange
//@ arg y i32[2] output
//@ expect y = block_sum(x, 32)
extern "C" __global__ void kernel(const int* x, int* y) {
    __shared__ volatile int s[32];
    int t = threadIdx.x;
    s[t] = x[blockIdx.x * 32 + t];
    __syncwarp();
    for (int d = 16; d > 0; d /= 2) {
        int v = t < d ? s[t + d] : 0;
        __syncwarp();
        if (t < d) s[t] = s[t] + v;
        __syncwarp();
    }
    if (t == 0) y[blockIdx.x] = s[0];
}
