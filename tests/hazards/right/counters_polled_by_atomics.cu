// A counter polled with atomicAdd(p, 0) after a fence orders what was stored before its increments.
//@ launch kernel grid 3 block 32
//@ arg x i32[64] input arange
//@ arg s i32[64] scratch
//@ arg count u32[1] inout zeros
//@ arg y i32[64] output
//@ expect y = reverse_blocks(x, 64)
extern "C" __global__ void kernel(const int* x, int* s, unsigned* count, int* y) {
    int t = threadIdx.x;
    if (blockIdx.x < 2) {
        s[blockIdx.x * 32 + t] = x[blockIdx.x * 32 + t];
        __syncthreads();
        __threadfence();
        if (t == 0) atomicAdd(count, 1);
        return;
    }
    if (t == 0) while (atomicAdd(count, 0) < 2) {}
    __threadfence();
    __syncthreads();
    y[t] = s[63 - t];
    y[t + 32] = s[31 - t];
}
