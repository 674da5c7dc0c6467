// An address of shared memory has 32 bits: a wider register is truncated, as where a generic pointer is handed to an
// instruction of the space.
//@ arch sm_90
//@ launch kernel grid 2 block 64
//@ arg x i32[128] input arange
//@ arg y i32[128] output
//@ expect y = copy(x)
extern "C" __global__ void kernel(const int* x, int* y) {
    __shared__ int s[64];
    int i = blockIdx.x * 64 + threadIdx.x, value;
    asm volatile("st.shared.s32 [%0], %1;" ::"l"((unsigned long long)(s + threadIdx.x)), "r"(x[i]) : "memory");
    __syncthreads();
    asm volatile("ld.shared::cta.s32 %0, [%1];" : "=r"(value) : "l"((unsigned long long)(s + threadIdx.x)) : "memory");
    y[i] = value;
}
