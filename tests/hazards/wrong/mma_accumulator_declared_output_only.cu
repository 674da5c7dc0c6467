// The accumulators of a tensor core product are outputs only: the sum begins with what the registers held.
//@ verdict uninitialized
//@ launch kernel grid 1 block 32
//@ arg x f16[256] input mod 8
//@ arg y f32[128] output
extern "C" __global__ void kernel(const unsigned short* x, float* y) {
    const unsigned* a = (const unsigned*)x;
    int t = threadIdx.x;
    float d[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    unsigned a0 = a[t], a1 = a[32 + t], b0 = a[64 + t];
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};" : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3]) : "r"(a0), "r"(a1), "r"(b0)); // CONFLICT
    for (int i = 0; i < 4; ++i) y[t * 4 + i] = d[i]; // HAZARD
}
