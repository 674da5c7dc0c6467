// More threads than the kernel was compiled for.
//@ verdict launch_failed
//@ launch kernel grid 1 block 128
//@ arg y i32[128] output
extern "C" __global__ void __launch_bounds__(64) kernel(int* y) {
    y[threadIdx.x] = threadIdx.x;
}
