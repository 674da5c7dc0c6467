// bfloat16 arithmetic from cuda_bf16.h.
//@ launch kernel grid 1 block 32
//@ arg x bf16[64] input mod 16
//@ arg y bf16[64] output
//@ expect y = mapped(x, three_x_plus_one)
#include <cuda_bf16.h>
extern "C" __global__ void kernel(const __nv_bfloat162* x, __nv_bfloat162* y) {
    int t = threadIdx.x;
    float2 v = __bfloat1622float2(x[t]);
    __nv_bfloat162 three = __float2bfloat162_rn(3.0f), one = __float2bfloat162_rn(1.0f);
    y[t] = v.x >= 0.0f ? __hfma2(x[t], three, one) : __hadd2(x[t], one);
}
