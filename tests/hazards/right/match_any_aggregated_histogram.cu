// Lanes with equal keys elect a leader that adds for all of them and hands the rank back by shuffle.
//@ launch kernel grid 1 block 64
//@ arg x u32[64] input mod 9
//@ arg counts u32[9] inout zeros
//@ arg y u32[64] output
//@ expect counts = histogram(x)
extern "C" __global__ void kernel(const unsigned* x, unsigned* counts, unsigned* y) {
    unsigned key = x[threadIdx.x], lane = threadIdx.x % 32;
    unsigned peers = __match_any_sync(0xffffffffu, key);
    unsigned leader = __ffs(peers) - 1, base = 0;
    if (lane == leader) base = atomicAdd(&counts[key], __popc(peers));
    base = __shfl_sync(peers, base, leader);
    y[threadIdx.x] = base + __popc(peers & ((1u << lane) - 1)) < 8;
}
