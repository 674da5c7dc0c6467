// A thread-private table of eight entries is indexed with nine values.
//@ verdict out_of_bounds
//@ launch kernel grid 1 block 9
//@ arg x i32[9] input arange
//@ arg y i32[9] output
extern "C" __global__ void kernel(const int* x, int* y) {
    int table[8];
    int t = threadIdx.x;
    for (int i = 0; i < 8; ++i) table[(i + t) % 8] = i;
    int v = table[x[t]]; // HAZARD
    y[t] = v;
}
