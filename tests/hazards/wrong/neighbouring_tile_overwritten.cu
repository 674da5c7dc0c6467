// Two arrays side by side in shared memory: rows of 33 overflow the first one into the second.
//@ verdict race
//@ launch kernel grid 1 block 32,2
//@ arg x f32[64] input arange
//@ arg y f32[64] output
extern "C" __global__ void kernel(const float* x, float* y) {
    __shared__ float area[66];
    float* first = area;
    float* second = area + 32;
    int tx = threadIdx.x, ty = threadIdx.y;
    if (ty == 0) {
        first[tx * 33 % 64] = x[tx]; // HAZARD
    } else {
        second[tx] = x[32 + tx]; // HAZARD
    }
    __syncthreads();
    y[ty * 32 + tx] = area[ty * 32 + tx]; // HAZARD
}
