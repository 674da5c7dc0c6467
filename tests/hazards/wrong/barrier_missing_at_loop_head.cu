// Tiled product of two 32x32 matrices: the tile is used before every thread has filled its part of it.
//@ verdict race
//@ launch kernel grid 2,2 block 16,16
//@ arg a f32[1024] input mod 7
//@ arg b f32[1024] input mod 5
//@ arg c f32[1024] output
//@ arg n i32 32
extern "C" __global__ void kernel(const float* a, const float* b, float* c, int n) {
    __shared__ float as[16][16];
    __shared__ float bs[16][16];
    int tx = threadIdx.x, ty = threadIdx.y;
    int row = blockIdx.y * 16 + ty, col = blockIdx.x * 16 + tx;
    float sum = 0.0f;
    for (int t = 0; t < n; t += 16) {
        as[ty][tx] = a[row * n + t + tx]; // CONFLICT
        bs[ty][tx] = b[(t + ty) * n + col]; // CONFLICT
        for (int k = 0; k < 16; ++k) {
            float x = as[ty][k]; // HAZARD
            float y = bs[k][tx]; // HAZARD
            sum += x * y;
        }
        __syncthreads();
    }
    c[row * n + col] = sum;
}
