// Each group's leader stores a sum to shared memory; its peers read it without a warp barrier.
//@ verdict race
//@ also uninitialized
//@ launch kernel grid 1 block 32
//@ arg x u32[32] input mod 5
//@ arg y u32[32] output
extern "C" __global__ void kernel(const unsigned* x, unsigned* y) {
    __shared__ unsigned s[5];
    unsigned key = x[threadIdx.x];
    unsigned peers = __match_any_sync(0xffffffffu, key);
    if (__ffs(peers) - 1 == threadIdx.x) s[key] = __popc(peers); // HAZARD
    y[threadIdx.x] = s[key]; // HAZARD
}
