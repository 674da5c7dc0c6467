// Threads increment shared bins without atomics.
//@ verdict race
//@ launch kernel grid 1 block 128
//@ arg x i32[128] input mod 16
//@ arg y i32[16] output
extern "C" __global__ void kernel(const int* x, int* y) {
    __shared__ int bins[16];
    int t = threadIdx.x;
    if (t < 16) bins[t] = 0;
    __syncthreads();
    bins[x[t]]++; // HAZARD
    __syncthreads();
    if (t < 16) y[t] = bins[t];
}
