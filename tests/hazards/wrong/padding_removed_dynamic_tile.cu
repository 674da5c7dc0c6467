// The launch asks for an unpadded dynamic tile, the kernel addresses it with eight extra halves a row.
//@ verdict out_of_bounds
//@ launch kernel grid 1 block 64 shared 8192
//@ arg x u16[4096] input mod 9973
//@ arg y u16[4096] output
extern "C" __global__ void kernel(const unsigned short* x, unsigned short* y) {
    extern __shared__ uint4 tile[];
    unsigned short* rows = (unsigned short*)tile;
    int t = threadIdx.x;
    for (int c = 0; c < 64; c += 8) {
        *(uint4*)(rows + t * 72 + c) = *(const uint4*)(x + t * 64 + c); // HAZARD
    }
    __syncthreads();
    for (int c = 0; c < 64; ++c) {
        y[t * 64 + c] = rows[c * 72 + t]; // HAZARD
    }
}
