// Half of the warp has left: __syncwarp waits for those named that have not exited.
//@ launch kernel grid 1 block 32
//@ arg x i32[16] input arange
//@ arg y i32[16] output
//@ arg n i32 16
//@ expect y = reverse_blocks(x, 2)
extern "C" __global__ void kernel(const int* x, int* y, int n) {
    __shared__ int s[32];
    int t = threadIdx.x;
    if (t >= n) return;
    s[t] = x[t];
    __syncwarp();
    y[t] = s[t ^ 1];
}
