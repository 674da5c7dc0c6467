// All lanes add; one that adds too then reads plainly: the others' atomics are not ordered before.
//@ verdict race
//@ launch kernel grid 1 block 64
//@ arg y i32[1] output
extern "C" __global__ void kernel(int* y) {
    __shared__ int sum;
    int t = threadIdx.x;
    if (t == 0) sum = 0;
    __syncthreads();
    atomicAdd(&sum, 1); // CONFLICT
    if (t == 63) {
        int v;
        asm volatile("ld.shared.s32 %0, [%1];" : "=r"(v) : "r"((unsigned)__cvta_generic_to_shared(&sum)) : "memory"); // HAZARD
        y[0] = v;
    }
}
