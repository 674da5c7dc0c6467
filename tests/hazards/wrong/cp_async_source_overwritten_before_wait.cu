// The global source of an asynchronous copy is overwritten before the copy was waited for.
//@ verdict race
//@ launch kernel grid 1 block 32
//@ arg x i32[32] inout arange
//@ arg y i32[32] output
extern "C" __global__ void kernel(int* x, int* y) {
    __shared__ int s[32];
    int t = threadIdx.x;
    unsigned at = (unsigned)__cvta_generic_to_shared(&s[t]);
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(at), "l"(x + t) : "memory"); // CONFLICT
    asm volatile("cp.async.commit_group;" ::: "memory");
    x[t] = 0; // HAZARD
    asm volatile("cp.async.wait_group 0;" ::: "memory");
    y[t] = s[t];
}
