// Zeros that are meant: constants and tables that the source sets to zero, and a counter that C++ clears.
//@ launch kernel grid 2 block 32
//@ arg x i32[64] input arange
//@ arg y i32[64] output
//@ expect y = copy(x)
__constant__ int offset = 0;
__constant__ int offsets[4] = {0, 0, 0, 0};
__device__ const int steps[4] = {0, 0, 0, 0};
constexpr int shifts[4] = {0, 0, 0, 0};
__device__ unsigned int count;
extern "C" __global__ void kernel(const int* x, int* y) {
    int i = blockIdx.x * 32 + threadIdx.x;
    atomicAdd(&count, 1u);
    y[i] = x[i] + offset + offsets[i & 3] + steps[i & 3] + shifts[i & 3];
}
