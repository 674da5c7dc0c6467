// One member of the structs in shared memory is never set, and read.
//@ verdict uninitialized
//@ launch kernel grid 1 block 32
//@ arg x i32[32] input arange
//@ arg y i32[32] output
struct Entry { int key; short weight; short flag; };
extern "C" __global__ void kernel(const int* x, int* y) {
    __shared__ Entry entries[32];
    int t = threadIdx.x;
    entries[t].key = x[t];
    entries[t].weight = 3;
    __syncthreads();
    Entry e = entries[31 - t]; // HAZARD
    y[t] = e.key * e.weight + e.flag; // HAZARD
}
