// A shuffle between the store and the load of another lane's word is taken for a barrier.
//@ verdict race
//@ launch kernel grid 1 block 32
//@ arg x i32[32] input arange
//@ arg y i32[32] output
extern "C" __global__ void kernel(const int* x, int* y) {
    __shared__ int s[32];
    int t = threadIdx.x;
    s[t] = x[t]; // CONFLICT
    int other = __shfl_xor_sync(0xffffffffu, t, 1);
    int v = s[other]; // HAZARD
    y[t] = v;
}
