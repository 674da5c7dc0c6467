// Hillis-Steele scan between two shared rows, one barrier a step.
//@ launch kernel grid 1 block 64
//@ arg x i32[64] input mod 13
//@ arg y i32[64] output
//@ expect y = prefix_sum(x)
extern "C" __global__ void kernel(const int* x, int* y) {
    __shared__ int s[2][64];
    int t = threadIdx.x, from = 0;
    s[0][t] = x[t];
    __syncthreads();
    for (int d = 1; d < 64; d *= 2) {
        s[1 - from][t] = s[from][t] + (t >= d ? s[from][t - d] : 0);
        from = 1 - from;
        __syncthreads();
    }
    y[t] = s[from][t];
}
