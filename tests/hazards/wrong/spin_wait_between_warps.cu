// Warp 0 hands a tile to warp 1 through a volatile flag, without a fence on either side.
//@ verdict race
//@ launch kernel grid 1 block 64
//@ arg x f32[32] input arange
//@ arg y f32[32] output
extern "C" __global__ void kernel(const float* x, float* y) {
    __shared__ float tile[32];
    __shared__ volatile int ready;
    int t = threadIdx.x;
    if (t == 0) ready = 0;
    __syncthreads();
    if (t < 32) {
        tile[t] = x[t]; // CONFLICT
        __syncwarp();
        if (t == 0) ready = 1; // CONFLICT
    } else {
        while (ready == 0) { // HAZARD
        }
        float v = tile[63 - t]; // HAZARD
        y[t - 32] = v;
    }
}
