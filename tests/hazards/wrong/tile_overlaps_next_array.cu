// A tile of 16 rows gets 17: the last row lands in the array behind it, which others read meanwhile.
//@ verdict race
//@ launch kernel grid 1 block 32,2
//@ arg x f32[544] input arange
//@ arg y f32[64] output
extern "C" __global__ void kernel(const float* x, float* y) {
    __shared__ struct {
        float tile[16 * 32];
        float sums[64];
    } s;
    int tx = threadIdx.x, ty = threadIdx.y;
    s.sums[ty * 32 + tx] = tx; // HAZARD
    for (int r = ty; r < 17; r += 2) s.tile[r * 32 + (31 - tx)] = x[r * 32 + tx]; // HAZARD
    __syncthreads();
    y[ty * 32 + tx] = s.sums[ty * 32 + tx] + s.tile[ty * 32 + tx];
}
