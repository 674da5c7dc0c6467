// Two smoothing steps in one launch: __syncthreads does not order the neighbouring block.
//@ verdict race
//@ launch kernel grid 2 block 32
//@ arg x f32[64] inout arange
//@ arg y f32[64] output
extern "C" __global__ void kernel(float* x, float* y) {
    int i = blockIdx.x * 32 + threadIdx.x;
    x[i] = 3.0f; // HAZARD
    __syncthreads();
    float right = 0.0f;
    if (i < 63) right = x[i + 1]; // HAZARD
    y[i] = right;
}
