// Blocks add up slices; the last one by a ticket combines them, and resets the ticket for the next launch.
//@ launch kernel grid 4,2 block 64
//@ launch kernel grid 4,2 block 64
//@ arg x i32[512] input mod 7
//@ arg part i32[8] scratch
//@ arg ticket u32[2] inout zeros
//@ arg y i32[2] output
//@ expect y = block_sum(x, 256)
extern "C" __global__ void kernel(const int* x, int* part, unsigned* ticket, int* y) {
    __shared__ int s[64];
    __shared__ bool last;
    int t = threadIdx.x, slice = blockIdx.y * gridDim.x + blockIdx.x;
    s[t] = x[slice * 64 + t];
    __syncthreads();
    for (int k = 32; k > 0; k /= 2) {
        if (t < k) s[t] += s[t + k];
        __syncthreads();
    }
    if (t == 0) {
        part[slice] = s[0];
        __threadfence();
        last = atomicInc(&ticket[blockIdx.y], gridDim.x - 1) == gridDim.x - 1;
        __threadfence();
    }
    __syncthreads();
    if (last && t == 0) {
        int sum = 0;
        for (int i = 0; i < gridDim.x; ++i) sum += __ldcg(&part[blockIdx.y * gridDim.x + i]);
        y[blockIdx.y] = sum;
    }
}
