// Lanes beyond the data leave in the middle of a warp; the rest goes on to a block barrier.
//@ launch kernel grid 1 block 64
//@ arg x f32[40] input arange
//@ arg y f32[40] output
//@ arg n i32 40
//@ expect y = reverse_blocks(x, 8)
extern "C" __global__ void kernel(const float* x, float* y, int n) {
    __shared__ float s[64];
    int t = threadIdx.x;
    if (t >= n) return;
    s[t] = x[t];
    __syncthreads(); // WARNING
    y[t] = s[t ^ 7];
}
