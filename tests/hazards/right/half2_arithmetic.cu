// half2 arithmetic from cuda_fp16.h: fma, conversion, comparison.
//@ launch kernel grid 1 block 32
//@ arg x f16[64] input mod 16
//@ arg y f16[64] output
//@ expect y = mapped(x, three_x_plus_one)
#include <cuda_fp16.h>
extern "C" __global__ void kernel(const __half2* x, __half2* y) {
    int t = threadIdx.x;
    __half2 v = __hfma2(x[t], __float2half2_rn(3.0f), __float2half2_rn(1.0f));
    y[t] = __hmax2(v, __float2half2_rn(0.0f));
}
