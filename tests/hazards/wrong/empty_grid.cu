// A grid of no blocks.
//@ verdict launch_failed
//@ launch kernel grid 0 block 32
//@ arg y i32[32] output
extern "C" __global__ void kernel(int* y) {
    y[threadIdx.x] = threadIdx.x;
}
