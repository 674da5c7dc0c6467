// Threads beyond the data put an unset register into shared memory, where nobody reads it.
//@ launch kernel grid 1 block 64
//@ arg x f32[50] input arange
//@ arg y f32[50] output
//@ arg n i32 50
//@ expect y = rotate(x, 1)
extern "C" __global__ void kernel(const float* x, float* y, int n) {
    __shared__ float tile[64];
    int t = threadIdx.x;
    float mine;
    asm volatile("{\n.reg .pred p;\nsetp.lt.s32 p, %1, %2;\n@p ld.global.f32 %0, [%3];\n}" : "=f"(mine) : "r"(t), "r"(n), "l"(x + t) : "memory");
    tile[t] = mine;
    __syncthreads();
    if (t < n) y[t] = tile[(t + 1) % n];
}
