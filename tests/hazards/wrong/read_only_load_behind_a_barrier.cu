// A barrier orders the threads of a block, but not what the read-only cache holds.
//@ verdict race
//@ launch kernel grid 1 block 64
//@ arg x i32[64] input arange
//@ arg s i32[64] scratch
//@ arg y i32[64] output
extern "C" __global__ void kernel(const int* x, int* s, int* y) {
    int t = threadIdx.x;
    s[t] = x[t]; // CONFLICT
    __syncthreads();
    y[t] = __ldg(&s[63 - t]); // HAZARD
}
