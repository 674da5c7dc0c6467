// The last block writes a sum that a variable of the module holds, and nobody clears it.
//@ verdict module_state
//@ keep variables
//@ launch kernel grid 4 block 32
//@ launch finish grid 1 block 1
//@ arg x i32[128] input arange
//@ arg y i32[1] output
static __device__ int total;
extern "C" __global__ void kernel(const int* x, int* y) {
    atomicAdd(&total, x[blockIdx.x * 32 + threadIdx.x]); // HAZARD
}
extern "C" __global__ void finish(const int* x, int* y) { y[0] = total; }
