// Keep the odd elements, in order: ballot inside a warp, a shared prefix over the warps.
//@ launch kernel grid 1 block 128
//@ arg x i32[128] input mod 11
//@ arg y i32[128] inout zeros
//@ expect y = odd_compacted(x)
extern "C" __global__ void kernel(const int* x, int* y) {
    __shared__ int counts[4];
    int t = threadIdx.x, lane = t % 32, warp = t / 32, v = x[t];
    bool keep = v & 1;
    unsigned mask = __ballot_sync(0xffffffffu, keep);
    if (lane == 0) counts[warp] = __popc(mask);
    __syncthreads();
    int base = 0;
    for (int w = 0; w < warp; ++w) base += counts[w];
    if (keep) y[base + __popc(mask & ((1u << lane) - 1))] = v;
}
