// The first thread takes a lock and keeps it; the second waits for ever.
//@ verdict deadlock
//@ launch kernel grid 2 block 32
//@ arg lock i32[1] inout zeros
//@ arg y i32[2] output
extern "C" __global__ void kernel(int* lock, int* y) {
    if (threadIdx.x == 0) {
        while (atomicCAS(lock, 0, 1) != 0) { // HAZARD
        }
        __threadfence();
        y[blockIdx.x] = 1;
    }
}
