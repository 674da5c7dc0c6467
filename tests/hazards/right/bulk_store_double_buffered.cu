// Tiles leave by bulk stores from two buffers in turns; a buffer is refilled after wait_group.read.
//@ arch sm_90
//@ launch kernel grid 1 block 64
//@ arg x f32[320] input arange
//@ arg y f32[320] output
//@ expect y = reverse_blocks(x, 64)
extern "C" __global__ void kernel(const float* x, float* y) {
    __shared__ __align__(16) float s[2][64];
    int t = threadIdx.x;
    for (int i = 0; i < 5; ++i) {
        if (t == 0) asm volatile("cp.async.bulk.wait_group.read 1;" ::: "memory");
        __syncthreads();
        s[i & 1][63 - t] = x[i * 64 + t];
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        __syncthreads();
        if (t == 0) {
            asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 256;" ::"l"(y + i * 64), "r"((unsigned)__cvta_generic_to_shared(s[i & 1])) : "memory");
            asm volatile("cp.async.bulk.commit_group;" ::: "memory");
        }
    }
    if (t == 0) asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}
