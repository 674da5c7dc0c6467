// Atomics of 64 and 16 bits, signed, float and double, on shared and global memory.
//@ launch kernel grid 2 block 64
//@ arg z i64[8] inout zeros
//@ arg y i64[8] output
//@ launch finish grid 1 block 1
//@ expect y = constant(1)
#include <cuda_fp16.h>
extern "C" __global__ void kernel(long long* z, long long* y) {
    __shared__ long long most;
    __shared__ unsigned short small;
    int t = threadIdx.x, g = blockIdx.x * 64 + t;
    if (t == 0) { most = -1000; small = 0; }
    __syncthreads();
    atomicMax(&most, (long long)g - 500);
    unsigned short seen = atomicCAS(&small, (unsigned short)0, (unsigned short)(t + 1));
    __syncthreads();
    if (t == 0) atomicAdd((unsigned long long*)&z[0], (unsigned long long)most);
    if (seen == 0) atomicAdd((unsigned long long*)&z[1], 1ull);
    atomicAdd((double*)&z[2], 0.5);
    atomicMin(&z[3], -(long long)g);
    atomicOr((unsigned long long*)&z[4], 1ull << (g % 64));
    atomicAdd((float*)&z[5], 0.25f);
    atomicExch((unsigned long long*)&z[6], 77ull);
    atomicAdd((__half*)&z[7], __float2half(1.0f));
}
extern "C" __global__ void finish(long long* z, long long* y) {
    y[0] = z[0] == (63 - 500) + (127 - 500);
    y[1] = z[1] == 2;
    y[2] = *(double*)&z[2] == 64.0;
    y[3] = z[3] == -127;
    y[4] = z[4] == -1;
    y[5] = *(float*)&z[5] == 32.0f;
    y[6] = z[6] == 77;
    y[7] = __half2float(*(__half*)&z[7]) == 128.0f;
}
