// A shared counter is read plainly in the phase in which others add to it atomically.
//@ verdict race
//@ launch kernel grid 1 block 64
//@ arg x i32[64] input mod 2
//@ arg y i32[64] output
extern "C" __global__ void kernel(const int* x, int* y) {
    __shared__ int n;
    if (threadIdx.x == 0) n = 0;
    __syncthreads();
    if (x[threadIdx.x]) atomicAdd(&n, 1); // HAZARD
    y[threadIdx.x] = n > 0; // HAZARD
}
