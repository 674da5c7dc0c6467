// The first lane of every warp takes the lock for its warp.
//@ launch kernel grid 3 block 64
//@ arg lock i32[1] inout zeros
//@ arg y i32[1] inout zeros
//@ expect y = constant(192)
extern "C" __global__ void kernel(int* lock, volatile int* y) {
    int votes = __popc(__ballot_sync(0xffffffffu, true));
    if (threadIdx.x % 32 == 0) {
        while (atomicCAS(lock, 0, 1) != 0) {
        }
        __threadfence();
        y[0] = y[0] + votes;
        __threadfence();
        atomicExch(lock, 0);
    }
}
