// Threads without an element leave their partial sum unset, and all of them are added up.
//@ verdict uninitialized
//@ launch kernel grid 1 block 64
//@ arg x f32[50] input arange
//@ arg y f32[1] output
//@ arg n i32 50
extern "C" __global__ void kernel(const float* x, float* y, int n) {
    __shared__ float part[64];
    int t = threadIdx.x;
    float mine;
    asm volatile("{\n.reg .pred p;\nsetp.lt.s32 p, %1, %2;\n@p ld.global.f32 %0, [%3];\n}" : "=f"(mine) : "r"(t), "r"(n), "l"(x + t) : "memory");
    part[t] = mine;
    __syncthreads();
    if (t == 0) {
        float sum = 0.0f;
        for (int i = 0; i < 64; ++i) sum += part[i]; // HAZARD
        y[0] = sum;
    }
}
