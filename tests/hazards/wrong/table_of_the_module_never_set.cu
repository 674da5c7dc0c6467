// A table of the module that no kernel writes is read, and nobody sets it.
//@ verdict uninitialized
//@ launch kernel grid 2 block 32
//@ arg x i32[64] input mod 4
//@ arg y i32[64] output
namespace tables { __device__ int offsets[4]; }
extern "C" __global__ void kernel(const int* x, int* y) {
    int i = blockIdx.x * 32 + threadIdx.x;
    y[i] = i + tables::offsets[x[i]]; // HAZARD
}
