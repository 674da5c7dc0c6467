// The last of four splits adds up the parts; it does not reset the semaphore for the next launch.
//@ verdict module_state
//@ keep variables
//@ launch kernel grid 4 block 32
//@ arg x i32[128] input arange
//@ arg part i32[128] scratch
//@ arg y i32[32] output
__device__ unsigned semaphore;
extern "C" __global__ void kernel(const int* x, int* part, int* y) {
    __shared__ bool last;
    int t = threadIdx.x;
    part[blockIdx.x * 32 + t] = x[blockIdx.x * 32 + t];
    __threadfence();
    __syncthreads();
    if (t == 0) last = atomicAdd(&semaphore, 1u) % 4 == 3; // HAZARD
    __syncthreads();
    if (!last) return;
    __threadfence();
    int sum = 0;
    for (int s = 0; s < 4; ++s) sum += part[s * 32 + t];
    y[t] = sum;
}
