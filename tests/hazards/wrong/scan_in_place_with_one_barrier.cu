// Hillis-Steele scan in place: a barrier between the read and the write of a step is missing.
//@ verdict race
//@ launch kernel grid 1 block 64
//@ arg x i32[64] input arange
//@ arg y i32[64] output
extern "C" __global__ void kernel(const int* x, int* y) {
    __shared__ int s[64];
    int t = threadIdx.x;
    s[t] = x[t];
    __syncthreads();
    for (int d = 1; d < 64; d *= 2) {
        int v = 0;
        if (t >= d) v = s[t - d]; // HAZARD
        s[t] += v; // HAZARD
        __syncthreads();
    }
    y[t] = s[t];
}
