// A maximum by a test and a store, both atomic: another block may store between them.
//@ verdict incorrect|nondeterministic
//@ launch reset grid 1 block 1
//@ launch kernel grid 64 block 32
//@ arg x i32[2048] input mod 1999
//@ arg y i32[1] output
//@ expect y = maximum(x)
extern "C" __global__ void reset(const int* x, int* y) { y[0] = -1; }
extern "C" __global__ void kernel(const int* x, int* y) {
    int most = __reduce_max_sync(~0u, x[blockIdx.x * 32 + threadIdx.x]);
    if (threadIdx.x == 0 && atomicAdd(y, 0) < most) atomicExch(y, most);
}
