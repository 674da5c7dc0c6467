// One atomic a warp: the leader adds for all its lanes, the others take their place by a shuffle.
//@ launch kernel grid 2 block 64
//@ arg x i32[128] input mod 3
//@ arg count i32[1] inout zeros
//@ expect count = constant(43)
extern "C" __global__ void kernel(const int* x, int* count) {
    if (x[blockIdx.x * 64 + threadIdx.x] == 0) {
        unsigned active = __activemask();
        int leader = __ffs(active) - 1, lane = threadIdx.x % 32, base = 0;
        if (lane == leader) base = atomicAdd(count, __popc(active));
        base = __shfl_sync(active, base, leader);
        if (base < 0) count[1000] = 0;
    }
}
