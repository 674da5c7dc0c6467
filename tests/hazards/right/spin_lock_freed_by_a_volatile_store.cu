// A lock is taken by compare-and-swap and freed by a volatile store after a fence.
//@ launch kernel grid 8 block 32
//@ arg lock i32[1] inout zeros
//@ arg y i32[1] inout zeros
//@ expect y = constant(8)
extern "C" __global__ void kernel(int* lock, int* y) {
    if (threadIdx.x == 0) {
        while (atomicCAS(lock, 0, 1) != 0) {}
        __threadfence();
        y[0] += 1;
        __threadfence();
        *(volatile int*)lock = 0;
    }
}
