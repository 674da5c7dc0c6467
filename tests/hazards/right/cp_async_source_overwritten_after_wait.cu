// The source of an asynchronous copy is overwritten behind the wait and a barrier.
//@ launch kernel grid 1 block 64
//@ arg x i32[64] inout arange
//@ arg y i32[64] output
//@ expect y = copy(x)
extern "C" __global__ void kernel(int* x, int* y) {
    __shared__ int s[64];
    int t = threadIdx.x;
    x[t] = x[t] + 1;
    unsigned at = (unsigned)__cvta_generic_to_shared(&s[t]);
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(at), "l"(x + t) : "memory");
    asm volatile("cp.async.commit_group;" ::: "memory");
    asm volatile("cp.async.wait_group 0;" ::: "memory");
    __syncthreads();
    x[63 - t] = -1;
    y[t] = s[t] - 1;
}
