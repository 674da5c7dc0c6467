// A spin lock taken by every thread of a warp, released inside the loop.
//@ launch kernel grid 2 block 64
//@ arg lock i32[1] inout zeros
//@ arg y i32[1] inout zeros
//@ expect y = constant(128)
extern "C" __global__ void kernel(int* lock, int* y) {
    bool done = false;
    while (!done) {
        if (atomicCAS(lock, 0, 1) == 0) {
            __threadfence();
            y[0] = y[0] + 1;
            __threadfence();
            atomicExch(lock, 0);
            done = true;
        }
    }
}
