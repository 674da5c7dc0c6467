// Threads clear a shared histogram and add to it at once.
//@ verdict race
//@ also uninitialized
//@ launch kernel grid 1 block 64
//@ arg x i32[64] input mod 64
//@ arg y i32[64] output
extern "C" __global__ void kernel(const int* x, int* y) {
    __shared__ int bins[64];
    bins[threadIdx.x] = 0; // HAZARD
    atomicAdd(&bins[63 - x[threadIdx.x]], 1); // HAZARD
    __syncthreads();
    y[threadIdx.x] = bins[threadIdx.x];
}
