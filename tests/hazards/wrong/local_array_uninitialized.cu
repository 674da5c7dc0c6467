// The private table is filled up to n, and read beyond.
//@ verdict uninitialized
//@ launch kernel grid 1 block 8
//@ arg x i32[8] input arange
//@ arg y i32[8] output
//@ arg n i32 6
extern "C" __global__ void kernel(const int* x, int* y, int n) {
    int table[16];
    for (int i = 0; i < n; ++i) table[i] = i * i + x[0];
    int v = table[x[threadIdx.x]]; // HAZARD
    y[threadIdx.x] = v;
}
