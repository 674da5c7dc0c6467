// A thread looks at a counter, then adds to it; another adds without a barrier in between.
//@ verdict race
//@ launch kernel grid 1 block 64
//@ arg y i32[1] output
extern "C" __global__ void kernel(int* y) {
    __shared__ int sum;
    int t = threadIdx.x;
    if (t == 0) sum = 5;
    __syncthreads();
    if (t == 0) {
        int v;
        asm volatile("ld.shared.s32 %0, [%1];" : "=r"(v) : "r"((unsigned)__cvta_generic_to_shared(&sum)) : "memory"); // HAZARD
        y[0] = v;
        atomicAdd(&sum, 1);
    } else if (t == 32) {
        atomicAdd(&sum, 1); // HAZARD
    }
}
