// The tiled product with both barriers, on sizes that are no multiple of the tile.
//@ launch kernel grid 3,2 block 16,16
//@ arg a f32[740] input mod 7
//@ arg b f32[1480] input mod 5
//@ arg c f32[800] output
//@ arg m i32 20
//@ arg n i32 40
//@ arg k i32 37
//@ expect c = gemm(a, b, 20, 40, 37)
extern "C" __global__ void kernel(const float* a, const float* b, float* c, int m, int n, int k) {
    __shared__ float as[16][16];
    __shared__ float bs[16][16];
    int tx = threadIdx.x, ty = threadIdx.y, row = blockIdx.y * 16 + ty, col = blockIdx.x * 16 + tx;
    float sum = 0.0f;
    for (int t = 0; t < k; t += 16) {
        as[ty][tx] = row < m && t + tx < k ? a[row * k + t + tx] : 0.0f;
        bs[ty][tx] = col < n && t + ty < k ? b[(t + ty) * n + col] : 0.0f;
        __syncthreads();
        for (int i = 0; i < 16; ++i) sum += as[ty][i] * bs[i][tx];
        __syncthreads();
    }
    if (row < m && col < n) c[row * n + col] = sum;
}
