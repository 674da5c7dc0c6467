// A fence for the block comes first; the one for the device behind it still acquires what the flag brought.
//@ launch kernel grid 2 block 32
//@ arg data i32[32] scratch
//@ arg flag i32[1] inout zeros
//@ arg y i32[32] output
//@ expect y = iota()
extern "C" __global__ void kernel(int* data, volatile int* flag, int* y) {
    int t = threadIdx.x;
    if (blockIdx.x == 0) {
        data[31 - t] = 31 - t;
        __threadfence();
        __syncthreads();
        if (t == 0) *flag = 1;
    } else {
        if (t == 0) {
            while (*flag == 0) {}
            __threadfence_block();
            __threadfence();
        }
        __syncthreads();
        y[t] = data[t];
    }
}
