// A tile of halves with an exclusive-or swizzle of its 16-byte chunks instead of padding, read by ldmatrix.
//@ launch kernel grid 1 block 32
//@ arg x u16[512] input arange
//@ arg y u32[256] output
//@ expect y = swizzled_tile(x)
extern "C" __global__ void kernel(const unsigned short* x, unsigned* y) {
    __shared__ __align__(128) unsigned short tile[8 * 64];
    int t = threadIdx.x;
    for (int i = t; i < 64; i += 32) {
        int row = i / 8, chunk = i % 8;
        *(uint4*)&tile[row * 64 + (chunk ^ row) * 8] = *(const uint4*)&x[row * 64 + chunk * 8];
    }
    __syncwarp();
    for (int half = 0; half < 2; ++half) {
        unsigned r[4];
        int row = t % 8, chunk = half * 4 + t / 8;
        unsigned p = (unsigned)__cvta_generic_to_shared(&tile[row * 64 + (chunk ^ row) * 8]);
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];" : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(p) : "memory");
        for (int k = 0; k < 4; ++k) y[(t / 4) * 32 + (half * 4 + k) * 4 + t % 4] = r[k];
    }
}
