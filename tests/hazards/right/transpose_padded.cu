// Transpose of a 40x24 matrix through a padded tile, with guarded edges.
//@ launch kernel grid 2,3 block 16,16
//@ arg x f32[960] input arange
//@ arg y f32[960] output
//@ arg rows i32 40
//@ arg cols i32 24
//@ expect y = transpose(x, 40, 24)
extern "C" __global__ void kernel(const float* x, float* y, int rows, int cols) {
    __shared__ float tile[16][17];
    int c = blockIdx.x * 16 + threadIdx.x, r = blockIdx.y * 16 + threadIdx.y;
    if (r < rows && c < cols) tile[threadIdx.y][threadIdx.x] = x[r * cols + c];
    __syncthreads();
    c = blockIdx.y * 16 + threadIdx.x;
    r = blockIdx.x * 16 + threadIdx.y;
    if (r < cols && c < rows) y[r * rows + c] = tile[threadIdx.x][threadIdx.y];
}
