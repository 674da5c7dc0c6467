// Blocks add their tiles to the output by a reducing bulk copy, without the proxy fence.
//@ verdict race
//@ arch sm_90
//@ launch kernel grid 3 block 64
//@ arg x i32[192] input arange
//@ arg y i32[64] inout zeros
extern "C" __global__ void kernel(const int* x, int* y) {
    __shared__ __align__(16) int s[64];
    int t = threadIdx.x;
    s[t] = x[blockIdx.x * 64 + t]; // CONFLICT
    __syncthreads();
    if (t == 0) {
        asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.s32 [%0], [%1], 256;" ::"l"(y), "r"((unsigned)__cvta_generic_to_shared(s)) : "memory"); // HAZARD
        asm volatile("cp.async.bulk.commit_group;" ::: "memory");
        asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
    }
}
