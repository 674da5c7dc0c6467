// The transposed tile is read before the other warps have stored it.
//@ verdict race
//@ launch kernel grid 1 block 16,16
//@ arg x f32[256] input arange
//@ arg y f32[256] output
extern "C" __global__ void kernel(const float* x, float* y) {
    __shared__ float tile[16][17];
    int tx = threadIdx.x, ty = threadIdx.y;
    tile[ty][tx] = x[ty * 16 + tx]; // CONFLICT
    float v = tile[tx][ty]; // HAZARD
    y[ty * 16 + tx] = v;
}
