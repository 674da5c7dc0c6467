// A fenced hand-over is right, the warp-synchronous sum before it counts on lockstep.
//@ verdict race
//@ launch kernel grid 2 block 32
//@ arg x i32[64] input arange
//@ arg flag i32[2] inout zeros
//@ arg y i32[2] output
extern "C" __global__ void kernel(const int* x, volatile int* flag, int* y) {
    __shared__ volatile int s[32];
    int t = threadIdx.x;
    s[t] = x[blockIdx.x * 32 + t]; // CONFLICT
    if (t < 16) {
        int v = s[t + 16]; // HAZARD
        s[t] = v; // CONFLICT
    }
    __syncwarp();
    if (t == 0) {
        y[blockIdx.x] = s[0];
        __threadfence();
        flag[blockIdx.x] = 1;
        while (flag[1 - blockIdx.x] == 0) {
        }
        __threadfence();
    }
}
