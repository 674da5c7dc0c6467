// A workspace in a variable of the module: each launch writes it before it reads it.
//@ keep variables
//@ launch kernel grid 1 block 64
//@ launch finish grid 1 block 64
//@ arg x i32[64] input arange
//@ arg y i32[64] output
//@ expect y = rotate(x, 3)
static __device__ int workspace[64];
extern "C" __global__ void kernel(const int* x, int* y) { workspace[threadIdx.x] = x[threadIdx.x]; }
extern "C" __global__ void finish(const int* x, int* y) { y[threadIdx.x] = workspace[(threadIdx.x + 3) & 63]; }
