// all, any, match_any and a segmented count, in a branch of part of the warp.
//@ launch kernel grid 1 block 32
//@ arg x i32[32] input mod 5
//@ arg y i32[32] output
//@ expect y = equal_in_lower_24(x)
extern "C" __global__ void kernel(const int* x, int* y) {
    int t = threadIdx.x, v = x[t], r = 0;
    if (t < 24) {
        unsigned same = __match_any_sync(0x00ffffffu, v);
        r = __popc(same);
        if (!__all_sync(0x00ffffffu, v < 5) || !__any_sync(0x00ffffffu, v == 4)) r = -1;
    }
    y[t] = r;
}
