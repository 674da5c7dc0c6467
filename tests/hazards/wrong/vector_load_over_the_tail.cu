// 30 floats read as eight float4: the last one ends two floats behind the buffer.
//@ verdict out_of_bounds
//@ launch kernel grid 1 block 8
//@ arg x f32[30] input arange
//@ arg y f32[32] output
extern "C" __global__ void kernel(const float4* x, float4* y) {
    y[threadIdx.x] = x[threadIdx.x]; // HAZARD
}
