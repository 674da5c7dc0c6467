// A halo is read before the first element of a shared array, which lies at shared address 0.
//@ verdict out_of_bounds
//@ also uninitialized
//@ launch kernel grid 1 block 128
//@ arg x f32[128] input arange
//@ arg y f32[128] output
extern "C" __global__ void kernel(const float* x, float* y) {
    __shared__ float s[128];
    s[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    y[threadIdx.x] = s[(int)threadIdx.x - 32]; // HAZARD
}
