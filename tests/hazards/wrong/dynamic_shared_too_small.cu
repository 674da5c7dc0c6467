// The launch passes the number of elements where bytes are wanted.
//@ verdict out_of_bounds
//@ launch kernel grid 1 block 64 shared 64
//@ arg x f32[64] input arange
//@ arg y f32[64] output
extern "C" __global__ void kernel(const float* x, float* y) {
    extern __shared__ float s[];
    int t = threadIdx.x;
    s[t] = x[t]; // HAZARD
    __syncthreads();
    y[t] = s[63 - t]; // HAZARD
}
