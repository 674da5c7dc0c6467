// Leading zeros, bit reversal, find first set, funnel shift, high multiplication.
//@ launch kernel grid 1 block 64
//@ arg x u32[64] input arange
//@ arg y u32[64] output
//@ expect y = integer_intrinsics(x)
extern "C" __global__ void kernel(const unsigned* x, unsigned* y) {
    unsigned v = x[threadIdx.x] * 2654435761u;
    y[threadIdx.x] = __clz(v) ^ __brev(v) ^ __ffs(v) ^ __funnelshift_l(v, v, 7) ^ __umulhi(v, 0x9e3779b9u) ^ (v / 7u) ^ (v % 13u);
}
