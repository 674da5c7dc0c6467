// A grid barrier as cooperative groups make it: the master block adds what turns the counter's top bit.
//@ launch kernel grid 6 block 64
//@ arg x i32[384] input arange
//@ arg s i32[384] scratch
//@ arg arrived u32[1] inout zeros
//@ arg y i32[384] output
//@ expect y = rotate(x, 128)
__device__ void grid_sync(unsigned* arrived) {
    __syncthreads();
    if (threadIdx.x == 0) {
        unsigned nb = blockIdx.x == 0 ? 0x80000000u - (gridDim.x - 1) : 1;
        __threadfence();
        unsigned old = atomicAdd(arrived, nb);
        while (((old ^ *(volatile unsigned*)arrived) & 0x80000000u) == 0) {}
        __threadfence();
    }
    __syncthreads();
}
extern "C" __global__ void kernel(const int* x, int* s, unsigned* arrived, int* y) {
    int i = blockIdx.x * 64 + threadIdx.x;
    s[i] = x[(i + 64) % 384];
    grid_sync(arrived);
    int v = s[(i + 64) % 384];
    grid_sync(arrived);
    s[i] = v;
    y[i] = s[i];
}
