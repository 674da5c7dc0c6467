// A local array is filled up to a bound that the read passes.
//@ verdict uninitialized
//@ launch kernel grid 1 block 32
//@ arg x i32[32] input mod 8
//@ arg y i32[32] output
extern "C" __global__ void kernel(const int* x, int* y) {
    int a[16];
    int n = x[threadIdx.x] + 8;
    for (int i = 0; i < n; ++i) a[(i * 5) & 15] = i;
    int sum = 0;
    for (int i = 0; i <= n; ++i) sum += a[(i * 5) & 15]; // HAZARD
    y[threadIdx.x] = sum;
}
