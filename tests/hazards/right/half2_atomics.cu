// Additions of half2 in global memory, on whole numbers.
//@ launch kernel grid 2 block 32
//@ arg y f16[2] inout zeros
//@ expect y = constant(64)
#include <cuda_fp16.h>
extern "C" __global__ void kernel(__half2* y) {
    atomicAdd(y, __float2half2_rn(1.0f));
}
