// 1056 threads in a block.
//@ verdict launch_failed
//@ launch kernel grid 1 block 1056
//@ arg y i32[1056] output
extern "C" __global__ void kernel(int* y) {
    y[threadIdx.x] = threadIdx.x;
}
