// The last block reads through the read-only cache what other blocks have released.
//@ verdict race
//@ launch kernel grid 4 block 32
//@ arg x i32[128] input arange
//@ arg part i32[128] scratch
//@ arg ticket i32[1] inout zeros
//@ arg y i32[1] output
extern "C" __global__ void kernel(const int* x, int* part, int* ticket, int* y) {
    __shared__ int last;
    int t = threadIdx.x, i = blockIdx.x * 32 + t;
    part[i] = x[i]; // CONFLICT
    __threadfence();
    __syncthreads();
    if (t == 0) last = atomicAdd(ticket, 1) == 3;
    __syncthreads();
    if (!last || t) return;
    __threadfence();
    int sum = 0;
    for (int k = 0; k < 128; ++k) sum += __ldg(&part[k]); // HAZARD
    y[0] = sum;
}
