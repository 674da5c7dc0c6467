// Points of three coordinates in vectors of four: nobody sets or uses the fourth.
//@ launch kernel grid 1 block 32
//@ arg x f32[96] input arange
//@ arg points f32[128] scratch
//@ arg y f32[96] output
//@ expect y = copy(x)
extern "C" __global__ void kernel(const float* x, float4* points, float* y) {
    int t = threadIdx.x;
    float unset;
    asm volatile("{\n.reg .pred p;\nsetp.gt.s32 p, %1, 31;\n@p mov.f32 %0, 0f00000000;\n}" : "=f"(unset) : "r"(t));
    points[t] = make_float4(x[3 * t], x[3 * t + 1], x[3 * t + 2], unset);
    __syncthreads();
    float4 p = points[t];
    y[3 * t] = p.x;
    y[3 * t + 1] = p.y;
    y[3 * t + 2] = p.z;
}
