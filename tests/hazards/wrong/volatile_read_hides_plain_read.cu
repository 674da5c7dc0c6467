// A thread reads a counter plainly, then as volatile; the atomic of another warp races with the first.
//@ verdict race
//@ launch kernel grid 1 block 64
//@ arg y i32[2] output
extern "C" __global__ void kernel(int* y) {
    __shared__ int sum;
    int t = threadIdx.x;
    if (t == 0) sum = 5;
    __syncthreads();
    if (t == 0) {
        int v;
        asm volatile("ld.shared.s32 %0, [%1];" : "=r"(v) : "r"((unsigned)__cvta_generic_to_shared(&sum)) : "memory"); // CONFLICT
        y[0] = v;
        y[1] = *(volatile int*)&sum;
    }
    __syncwarp();
    if (t == 32) atomicAdd(&sum, 1); // HAZARD
}
