// The byte offset of the row overflows 32 bits and comes out negative.
//@ verdict out_of_bounds
//@ launch kernel grid 1 block 4
//@ arg x u8[64] input arange
//@ arg y u8[4] output
//@ arg pitch i32 1073741824
extern "C" __global__ void kernel(const unsigned char* x, unsigned char* y, int pitch) {
    int offset = (threadIdx.x + 1) * pitch;
    unsigned char v = x[offset]; // HAZARD
    y[threadIdx.x] = v;
}
