// Block indices swapped in the output address: two blocks share a tile, another has no writer.
//@ verdict race
//@ launch kernel grid 2,2 block 32
//@ arg x f32[128] input arange
//@ arg y f32[128] output
extern "C" __global__ void kernel(const float* x, float* y) {
    int i = (blockIdx.x * 2 + blockIdx.y) * 32 + threadIdx.x;
    int o = (blockIdx.x * 2 + blockIdx.x) * 32 + threadIdx.x;
    y[o] = x[i]; // HAZARD
}
