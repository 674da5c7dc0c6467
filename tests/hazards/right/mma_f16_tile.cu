// One 16x8x16 tensor-core product per warp: ldmatrix for A, ldmatrix.trans for B.
//@ launch kernel grid 1 block 32
//@ arg a f16[256] input mod 7
//@ arg b f16[128] input mod 5
//@ arg c f32[128] output
//@ expect c = gemm(a, b, 16, 8, 16)
extern "C" __global__ void kernel(const unsigned short* a, const unsigned short* b, float* c) {
    __shared__ __align__(16) unsigned short as[16 * 24];
    __shared__ __align__(16) unsigned short bs[16 * 8];
    int t = threadIdx.x;
    for (int i = t; i < 256; i += 32) as[i / 16 * 24 + i % 16] = a[i];
    for (int i = t; i < 128; i += 32) bs[i] = b[i];
    __syncthreads();
    unsigned ra[4], rb[2];
    unsigned pa = (unsigned)__cvta_generic_to_shared(&as[(t % 16) * 24 + (t / 16) * 8]);
    unsigned pb = (unsigned)__cvta_generic_to_shared(&bs[(t % 16) * 8]);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];" : "=r"(ra[0]), "=r"(ra[1]), "=r"(ra[2]), "=r"(ra[3]) : "r"(pa) : "memory");
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0,%1}, [%2];" : "=r"(rb[0]), "=r"(rb[1]) : "r"(pb) : "memory");
    float d[4] = {0, 0, 0, 0};
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(ra[0]), "r"(ra[1]), "r"(ra[2]), "r"(ra[3]), "r"(rb[0]), "r"(rb[1]));
    int row = t / 4, col = t % 4 * 2;
    c[row * 8 + col] = d[0];
    c[row * 8 + col + 1] = d[1];
    c[(row + 8) * 8 + col] = d[2];
    c[(row + 8) * 8 + col + 1] = d[3];
}
