// redux.sync over a full warp: add, min, max, and, or, xor.
//@ launch kernel grid 1 block 32
//@ arg x u32[32] input arange
//@ arg y u32[6] output
//@ expect y = redux(x)
extern "C" __global__ void kernel(const unsigned* x, unsigned* y) {
    unsigned v = x[threadIdx.x] + 3;
    unsigned r[6] = {__reduce_add_sync(0xffffffffu, v), __reduce_min_sync(0xffffffffu, v), __reduce_max_sync(0xffffffffu, v),
                     __reduce_and_sync(0xffffffffu, v), __reduce_or_sync(0xffffffffu, v), __reduce_xor_sync(0xffffffffu, v)};
    if (threadIdx.x == 0)
        for (int i = 0; i < 6; ++i) y[i] = r[i];
}
