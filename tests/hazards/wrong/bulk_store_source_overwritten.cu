// Shared memory is overwritten while a bulk store may still read it: the wait comes too late.
//@ verdict race
//@ arch sm_90
//@ launch kernel grid 1 block 32
//@ arg x i32[64] input arange
//@ arg y i32[64] output
extern "C" __global__ void kernel(const int* x, int* y) {
    __shared__ __align__(128) int s[32];
    int t = threadIdx.x;
    for (int i = 0; i < 2; ++i) {
        s[t] = x[i * 32 + t]; // HAZARD
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        __syncthreads();
        if (t == 0) {
            asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 128;" ::"l"(y + i * 32), "r"((unsigned)__cvta_generic_to_shared(s)) : "memory"); // CONFLICT
            asm volatile("cp.async.bulk.commit_group;" ::: "memory");
        }
        __syncthreads();
    }
    if (t == 0) asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}
