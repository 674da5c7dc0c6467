// Initialised and zeroed variables of the module, the latter counted up by atomics.
//@ launch kernel grid 1 block 32
//@ launch finish grid 1 block 1
//@ arg x i32[32] input arange
//@ arg y i32[33] output
//@ expect y = scaled_then_count(x, 3)
__device__ int factor = 3;
__device__ int count;
extern "C" __global__ void kernel(const int* x, int* y) {
    y[threadIdx.x] = x[threadIdx.x] * factor;
    atomicAdd(&count, 1);
}
extern "C" __global__ void finish(const int* x, int* y) {
    y[32] = count;
}
