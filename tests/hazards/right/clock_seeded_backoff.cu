// The clock seeds a random start of a search through all elements; what is found is the same.
//@ launch kernel grid 1 block 32
//@ arg x i32[64] input arange
//@ arg y i32[32] output
//@ expect y = iota()
extern "C" __global__ void kernel(const int* x, int* y) {
    unsigned seed;
    asm volatile("mov.u32 %0, %%clock;" : "=r"(seed));
    int found = -1;
    for (int k = 0; k < 64; ++k) {
        int i = (seed + k) & 63;
        if (x[i] == (int)threadIdx.x) found = i;
    }
    y[threadIdx.x] = found;
}
