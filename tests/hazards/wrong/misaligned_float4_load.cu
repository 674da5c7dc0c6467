// A float4 load from an address that is only four-byte aligned.
//@ verdict misaligned
//@ launch kernel grid 1 block 16
//@ arg x f32[68] input arange
//@ arg y f32[64] output
extern "C" __global__ void kernel(const float* x, float* y) {
    int t = threadIdx.x;
    float4 v = *(const float4*)(x + 4 * t + 1); // HAZARD
    y[4 * t] = v.x;
    y[4 * t + 1] = v.y;
    y[4 * t + 2] = v.z;
    y[4 * t + 3] = v.w;
}
