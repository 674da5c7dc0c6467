// Warps beyond the data leave before the block's barriers, which count threads that have not exited.
//@ launch kernel grid 2 block 128
//@ arg x f32[160] input arange
//@ arg y f32[160] output
//@ arg n i32 160
//@ expect y = reverse_blocks(x, 32)
extern "C" __global__ void kernel(const float* x, float* y, int n) {
    __shared__ float s[128];
    int t = threadIdx.x, i = blockIdx.x * 128 + t;
    if (i >= n) return;
    s[t] = x[i];
    __syncthreads(); // WARNING
    y[i] = s[t ^ 31];
}
