// Threads leave a loop with a barrier as soon as their own work is done, and wait at the next one.
//@ verdict barrier_divergence
//@ launch kernel grid 1 block 64
//@ arg x i32[64] input mod 64
//@ arg y i32[64] output
extern "C" __global__ void kernel(const int* x, int* y) {
    __shared__ int s[64];
    int t = threadIdx.x, n = x[t];
    s[t] = 0;
    while (true) {
        if (n-- <= 32) break;
        s[t] += n;
        __syncthreads(); // HAZARD
    }
    __syncthreads(); // HAZARD
    y[t] = s[63 - t];
}
