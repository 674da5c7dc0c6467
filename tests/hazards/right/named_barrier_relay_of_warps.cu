// Four warps pass a row on, each handing over to the next with a named barrier of its own.
//@ launch kernel grid 1 block 128
//@ arg x i32[32] input arange
//@ arg y i32[32] output
//@ expect y = scale(x, 16)
extern "C" __global__ void kernel(const int* x, int* y) {
    __shared__ int s[32];
    int w = threadIdx.x / 32, lane = threadIdx.x % 32;
    if (w > 0) asm volatile("bar.sync %0, 64;" ::"r"(w) : "memory");
    int v = w == 0 ? x[31 - lane] : s[31 - lane];
    __syncwarp();
    s[lane] = 2 * v;
    __syncwarp();
    if (w < 3) asm volatile("bar.arrive %0, 64;" ::"r"(w + 1) : "memory");
    else y[lane] = s[lane];
}
