// A barrier between all blocks from an atomic counter, then every block reads its neighbour's result.
//@ launch kernel grid 4 block 32
//@ arg x f32[128] input arange
//@ arg mid f32[128] scratch
//@ arg count i32[1] inout zeros
//@ arg y f32[128] output
//@ expect y = rotate(x, 32)
extern "C" __global__ void kernel(const float* x, float* mid, int* count, float* y) {
    int i = blockIdx.x * 32 + threadIdx.x;
    mid[i] = x[i];
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        atomicAdd(count, 1);
        while (atomicAdd(count, 0) < gridDim.x) {
        }
        __threadfence();
    }
    __syncthreads();
    y[i] = mid[(i + 32) % 128];
}
