// Values move between two shared arrays of which the second half was never filled.
//@ verdict uninitialized
//@ launch kernel grid 1 block 32
//@ arg x i32[32] input arange
//@ arg y i32[32] output
extern "C" __global__ void kernel(const int* x, int* y) {
    __shared__ int a[64], b[64];
    int t = threadIdx.x;
    a[t] = x[t];
    __syncthreads();
    b[2 * t] = a[2 * t]; // HAZARD
    b[2 * t + 1] = a[2 * t + 1]; // HAZARD
    __syncthreads();
    y[t] = b[31 - t];
}
