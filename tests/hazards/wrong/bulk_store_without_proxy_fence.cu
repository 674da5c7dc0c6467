// A barrier orders the stores of the tile before the bulk store, but the proxy fence is missing.
//@ verdict race
//@ arch sm_90
//@ launch kernel grid 3 block 64
//@ arg x f32[192] input arange
//@ arg y f32[192] output
extern "C" __global__ void kernel(const float* x, float* y) {
    __shared__ __align__(16) float s[64];
    int t = threadIdx.x;
    s[63 - t] = x[blockIdx.x * 64 + t]; // CONFLICT
    __syncthreads();
    if (t == 0) {
        asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 256;" ::"l"(y + blockIdx.x * 64), "r"((unsigned)__cvta_generic_to_shared(s)) : "memory"); // HAZARD
        asm volatile("cp.async.bulk.commit_group;" ::: "memory");
        asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
    }
}
