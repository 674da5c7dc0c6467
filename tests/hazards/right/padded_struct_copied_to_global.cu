// Structs with padding, filled member by member, go from shared memory to global memory whole.
//@ launch kernel grid 1 block 32
//@ launch keys grid 1 block 32
//@ arg x i32[32] input arange
//@ arg s i32[96] scratch
//@ arg y i32[32] output
//@ expect y = reverse_blocks(x, 32)
struct Entry { char tag; int key; short weight; };
extern "C" __global__ void kernel(const int* x, Entry* s, int* y) {
    __shared__ Entry entries[32];
    int t = threadIdx.x;
    entries[t].tag = 1;
    entries[t].key = x[t];
    entries[t].weight = 3;
    __syncthreads();
    s[t] = entries[31 - t];
}
extern "C" __global__ void keys(const int* x, const Entry* s, int* y) { y[threadIdx.x] = s[threadIdx.x].key * s[threadIdx.x].tag; }
