// A maximum by compare and swap that tries again whenever another block was faster.
//@ launch reset grid 1 block 1
//@ launch kernel grid 64 block 32
//@ arg x i32[2048] input mod 1999
//@ arg y i32[1] output
//@ expect y = maximum(x)
extern "C" __global__ void reset(const int* x, int* y) { y[0] = -1; }
extern "C" __global__ void kernel(const int* x, int* y) {
    int most = __reduce_max_sync(~0u, x[blockIdx.x * 32 + threadIdx.x]);
    if (threadIdx.x == 0) {
        int old = atomicAdd(y, 0);
        while (old < most) {
            int seen = atomicCAS(y, old, most);
            if (seen == old) break;
            old = seen;
        }
    }
}
