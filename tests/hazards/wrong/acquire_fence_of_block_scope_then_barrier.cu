// A thread waits for another block, fences for its own block, and a barrier passes on what it has not acquired.
//@ verdict race
//@ launch kernel grid 2 block 32
//@ arg data i32[32] scratch
//@ arg flag i32[1] inout zeros
//@ arg y i32[32] output
extern "C" __global__ void kernel(int* data, volatile int* flag, int* y) {
    int t = threadIdx.x;
    if (blockIdx.x == 0) {
        data[t] = t; // CONFLICT
        __threadfence();
        __syncthreads();
        if (t == 0) *flag = 1;
    } else {
        if (t == 0) {
            while (*flag == 0) {}
            __threadfence_block();
        }
        __syncthreads();
        y[t] = data[31 - t]; // HAZARD
    }
}
