// A part for float4 follows an odd number of bytes.
//@ verdict misaligned
//@ launch kernel grid 1 block 32 shared 1024
//@ arg x f32[128] input arange
//@ arg y f32[128] output
extern "C" __global__ void kernel(const float* x, float* y) {
    extern __shared__ __align__(16) unsigned char raw[];
    float4* quads = reinterpret_cast<float4*>(raw + 40);
    int t = threadIdx.x;
    quads[t] = make_float4(x[4 * t], x[4 * t + 1], x[4 * t + 2], x[4 * t + 3]); // HAZARD
    __syncthreads();
    float4 q = quads[31 - t]; // HAZARD
    y[4 * t] = q.x;
    y[4 * t + 1] = q.y;
    y[4 * t + 2] = q.z;
    y[4 * t + 3] = q.w;
}
