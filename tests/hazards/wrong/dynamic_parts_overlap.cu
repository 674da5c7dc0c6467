// Two parts of one dynamic array overlap: the second starts at an element count taken for bytes.
//@ verdict race
//@ launch kernel grid 1 block 64 shared 512
//@ arg x f32[64] input arange
//@ arg y f32[64] output
extern "C" __global__ void kernel(const float* x, float* y) {
    extern __shared__ __align__(16) unsigned char raw[];
    float* a = reinterpret_cast<float*>(raw);
    float* b = reinterpret_cast<float*>(raw + 64);
    int t = threadIdx.x;
    a[t] = x[t]; // HAZARD
    b[t] = 2 * x[t]; // HAZARD
    __syncthreads();
    y[t] = a[63 - t] + b[t];
}
