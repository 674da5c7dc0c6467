// Another thread overwrites the source behind a barrier, while the copy is still under way.
//@ verdict race
//@ launch kernel grid 1 block 64
//@ arg x i32[64] inout arange
//@ arg y i32[64] output
extern "C" __global__ void kernel(int* x, int* y) {
    __shared__ int s[64];
    int t = threadIdx.x;
    unsigned at = (unsigned)__cvta_generic_to_shared(&s[t]);
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(at), "l"(x + t) : "memory"); // CONFLICT
    asm volatile("cp.async.commit_group;" ::: "memory");
    __syncthreads();
    x[63 - t] = -1; // HAZARD
    asm volatile("cp.async.wait_group 0;" ::: "memory");
    y[t] = s[t];
}
