// A transpose whose rows are still addressed with the padded pitch after the padding left the declaration.
//@ verdict out_of_bounds
//@ launch kernel grid 1 block 16,16
//@ arg x f32[256] input arange
//@ arg y f32[256] output
#define PITCH 17
extern "C" __global__ void kernel(const float* x, float* y) {
    __shared__ float tile[16 * 16];
    int tx = threadIdx.x, ty = threadIdx.y;
    tile[ty * PITCH + tx] = x[ty * 16 + tx]; // HAZARD
    __syncthreads();
    y[ty * 16 + tx] = tile[tx * PITCH + ty]; // HAZARD
}
