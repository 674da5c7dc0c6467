// The element before a null pointer ends where the address space does.
//@ verdict out_of_bounds
//@ launch kernel grid 1 block 32
//@ arg x f32[32] input arange
//@ arg none i64 0
//@ arg y f32[32] output
extern "C" __global__ void kernel(const float* x, const float* none, float* y) {
    y[threadIdx.x] = x[threadIdx.x] + none[(int)threadIdx.x - 32]; // HAZARD
}
