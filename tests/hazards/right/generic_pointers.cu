// One function reads through a generic pointer into global, shared, local and constant memory.
//@ launch kernel grid 1 block 32
//@ arg x i32[32] input arange
//@ arg y i32[32] output
//@ expect y = generic_pointers(x)
__constant__ int table[4] = {5, 6, 7, 8};
__device__ __noinline__ int fetch(const int* p, int i) {
    return p[i];
}
extern "C" __global__ void kernel(const int* x, int* y) {
    __shared__ int s[32];
    int own[4];
    int t = threadIdx.x;
    s[t] = x[t] * 2;
    for (int i = 0; i < 4; ++i) own[i] = i * t;
    __syncthreads();
    const int* from = t % 4 == 0 ? x : t % 4 == 1 ? s : t % 4 == 2 ? own : table;
    y[t] = fetch(from, t % 4 == 2 || t % 4 == 3 ? t % 4 : 31 - t);
}
