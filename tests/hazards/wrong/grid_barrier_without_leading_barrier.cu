// A grid barrier whose first thread reports before the rest of its block has stored.
//@ verdict race
//@ launch kernel grid 3 block 64
//@ arg x i32[192] input arange
//@ arg s i32[192] scratch
//@ arg arrived u32[1] inout zeros
//@ arg y i32[192] output
extern "C" __global__ void kernel(const int* x, int* s, unsigned* arrived, int* y) {
    int i = blockIdx.x * 64 + threadIdx.x;
    s[i] = x[i]; // CONFLICT
    if (threadIdx.x == 0) {
        __threadfence();
        atomicAdd(arrived, 1);
        while (*(volatile unsigned*)arrived < gridDim.x) {}
        __threadfence();
    }
    __syncthreads();
    y[i] = s[(i + 64) % 192]; // HAZARD
}
