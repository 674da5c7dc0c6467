// A struct argument by value, structs in shared memory, and a struct returned from a function.
//@ launch kernel grid 1 block 32
//@ arg x f32[64] input arange
//@ arg y f32[64] output
//@ arg scale f32 2
//@ expect y = scale(x, 2)
struct Pair {
    float a;
    float b;
};
__device__ Pair times(Pair p, float s) {
    return Pair{p.a * s, p.b * s};
}
extern "C" __global__ void kernel(const Pair* x, Pair* y, float scale) {
    __shared__ Pair s[32];
    int t = threadIdx.x;
    s[t] = x[t];
    __syncthreads();
    Pair p = times(s[31 - t], scale);
    y[31 - t] = p;
}
