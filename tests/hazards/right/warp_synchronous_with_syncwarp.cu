// The tail of a reduction inside one warp, with the __syncwarp calls it needs.
//@ launch kernel grid 1 block 64
//@ arg x i32[64] input arange
//@ arg y i32[1] output
//@ expect y = sum(x)
extern "C" __global__ void kernel(const int* x, int* y) {
    __shared__ int s[64];
    int t = threadIdx.x;
    s[t] = x[t];
    __syncthreads();
    if (t < 32) {
        int v = s[t] + s[t + 32];
        for (int d = 16; d > 0; d /= 2) {
            s[t] = v;
            __syncwarp();
            v += s[t ^ d];
            __syncwarp();
        }
        if (t == 0) y[0] = v;
    }
}
