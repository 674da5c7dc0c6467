// Lanes wait at one __syncwarp after different ways, for lanes that exit last.
//@ launch kernel grid 1 block 32
//@ arg x i32[32] input arange
//@ arg y i32[32] output
//@ expect y = scale(x, 1)
extern "C" __global__ void kernel(const int* x, int* y) {
    int i = threadIdx.x;
    y[i] = x[i];
    if (i >= 16) {
        for (int k = 0; k < i - 15; ++k) __nanosleep(20);
        return;
    }
    if (i < 8) {
        for (int k = 0; k < 3; ++k) __nanosleep(20);
        y[i] = x[i];
    }
    asm volatile("bar.warp.sync 0xffffffff;" ::: "memory");
}
