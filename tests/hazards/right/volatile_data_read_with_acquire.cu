// The same with a fence behind the loop: the data is what was written before the flag.
//@ launch kernel grid 2 block 1
//@ arg data i32[1] scratch
//@ arg flag i32[1] inout zeros
//@ arg y i32[1] output
//@ expect y = constant(42)
extern "C" __global__ void kernel(volatile int* data, volatile int* flag, int* y) {
    if (blockIdx.x == 0) {
        data[0] = 42;
        __threadfence();
        *flag = 1;
    } else {
        while (*flag == 0) {}
        __threadfence();
        y[0] = data[0];
    }
}
