// The old warp-synchronous tail of a reduction: volatile shared memory, no __syncwarp.
//@ verdict race
//@ launch kernel grid 1 block 64
//@ arg x i32[64] input arange
//@ arg y i32[1] output
extern "C" __global__ void kernel(const int* x, int* y) {
    __shared__ volatile int s[64];
    int t = threadIdx.x;
    s[t] = x[t];
    __syncthreads();
    if (t < 32) {
        s[t] += s[t + 32]; // HAZARD
        s[t] += s[t + 16]; // HAZARD
        s[t] += s[t + 8]; // HAZARD
        s[t] += s[t + 4]; // HAZARD
        s[t] += s[t + 2]; // HAZARD
        s[t] += s[t + 1]; // HAZARD
    }
    if (t == 0) y[0] = s[0];
}
