// A thread reads an element through the read-only cache and then replaces it: the value is there already.
//@ launch kernel grid 2 block 64
//@ arg y i32[128] inout arange
//@ arg z i32[128] output
//@ expect z = copy(y)
extern "C" __global__ void kernel(int* y, int* z) {
    int i = blockIdx.x * 64 + threadIdx.x;
    int v = __ldg(&y[i]);
    z[i] = v;
    y[i] = v + 1;
}
