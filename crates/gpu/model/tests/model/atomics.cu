// Atomics of which neighbouring lanes change the same word or each its own. To remake atomics.ptx and
// atomics.cubin: NVRTC 13.0, --gpu-architecture=sm_80 --std=c++17 -default-device.

extern "C" __global__ void global_sums(unsigned *sums, int lanes, int times) {
    unsigned *mine = sums + threadIdx.x / lanes;
    for (int i = 0; i < times; i++)
        atomicAdd(mine, threadIdx.x + i + 1);
}

extern "C" __global__ void shared_sums(unsigned *sums, int lanes, int times) {
    __shared__ unsigned own[1024];
    own[threadIdx.x] = 0;
    __syncthreads();
    for (int i = 0; i < times; i++)
        atomicAdd(own + threadIdx.x / lanes, threadIdx.x + i + 1);
    __syncthreads();
    sums[blockIdx.x * blockDim.x + threadIdx.x] = own[threadIdx.x];
}
