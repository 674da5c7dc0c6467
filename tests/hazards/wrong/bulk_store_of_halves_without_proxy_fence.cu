// Two threads store the halves of each word that a bulk copy reads, and no proxy fence follows.
//@ verdict race
//@ arch sm_90
//@ launch kernel grid 1 block 64
//@ arg x f16[64] input arange
//@ arg y f16[64] output
typedef unsigned short u16;
extern "C" __global__ void kernel(const u16* x, u16* y) {
    __shared__ __align__(16) u16 s[64];
    int t = threadIdx.x;
    s[t] = x[t]; // CONFLICT
    __syncthreads();
    if (t == 0) {
        asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 128;" ::"l"(y), "r"((unsigned)__cvta_generic_to_shared(s)) : "memory"); // HAZARD
        asm volatile("cp.async.bulk.commit_group;" ::: "memory");
        asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
    }
}
