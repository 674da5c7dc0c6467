// Rows padded by two halves instead of eight: ldmatrix needs 16-byte aligned rows.
//@ verdict misaligned
//@ launch kernel grid 1 block 32
//@ arg x u16[64] input arange
//@ arg y u32[32] output
extern "C" __global__ void kernel(const unsigned short* x, unsigned* y) {
    __shared__ __align__(16) unsigned short tile[8 * 10];
    int t = threadIdx.x;
    tile[(2 * t) / 8 * 10 + (2 * t) % 8] = x[2 * t];
    tile[(2 * t) / 8 * 10 + (2 * t) % 8 + 1] = x[2 * t + 1];
    __syncthreads();
    unsigned row = (unsigned)__cvta_generic_to_shared(&tile[(t & 7) * 10]);
    unsigned v;
    asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];" : "=r"(v) : "r"(row) : "memory"); // HAZARD
    y[t] = v;
}
