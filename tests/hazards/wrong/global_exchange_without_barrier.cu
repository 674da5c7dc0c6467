// Threads of a block exchange through global memory, the barrier before the read is missing.
//@ verdict race
//@ also uninitialized
//@ launch kernel grid 2 block 64
//@ arg x i32[128] input arange
//@ arg s i32[128] scratch
//@ arg y i32[128] output
extern "C" __global__ void kernel(const int* x, int* s, int* y) {
    int* own = s + blockIdx.x * 64;
    own[threadIdx.x] = x[blockIdx.x * 64 + threadIdx.x]; // HAZARD
    y[blockIdx.x * 64 + threadIdx.x] = own[63 - threadIdx.x]; // HAZARD
}
