// The tile has eight rows, but the lanes of the second matrix address eight more.
//@ verdict out_of_bounds
//@ launch kernel grid 1 block 32
//@ arg x u16[64] input arange
//@ arg y u32[64] output
extern "C" __global__ void kernel(const unsigned short* x, unsigned* y) {
    __shared__ __align__(16) unsigned short tile[64];
    int t = threadIdx.x;
    tile[2 * t] = x[2 * t];
    tile[2 * t + 1] = x[2 * t + 1];
    __syncthreads();
    unsigned row = (unsigned)__cvta_generic_to_shared(&tile[(t & 15) * 8]);
    unsigned a, b;
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];" : "=r"(a), "=r"(b) : "r"(row) : "memory"); // HAZARD
    y[2 * t] = a;
    y[2 * t + 1] = b;
}
