// Fetches and surface accesses of every geometry. nvcc 13.0 -ptx and -cubin of each architecture.
#define AT (blockIdx.x * blockDim.x + threadIdx.x)
#define KERNEL(name, ...)                                                                                              \
    extern "C" __global__ void name(cudaTextureObject_t t, const float4 *in, float4 *out) {                            \
        float4 p = in[AT], r = {0, 0, 0, 0};                                                                           \
        __VA_ARGS__;                                                                                                   \
        out[AT] = r;                                                                                                   \
    }
KERNEL(line, r.x = tex1D<float>(t, p.x); r.y = tex1DLod<float>(t, p.y, p.z); r.z = tex1DGrad<float>(t, p.z, p.x, p.y);
       r.w = tex1Dfetch<float>(t, (int)p.w))
KERNEL(plane, r = tex2D<float4>(t, p.x, p.y); r.x += tex2DLod<float>(t, p.z, p.w, p.x);
       float4 g = tex2Dgather<float4>(t, p.y, p.x, 1); r.y += g.x + g.w; float4 h = tex2D<float4>(t, p.w, p.y);
       r.z += h.y; r.w += h.w; bool there; r.x += tex2D<float>(t, p.y, p.z, &there); r.y += there;
       r.z += tex2DGrad<float>(t, p.x, p.z, make_float2(p.x, p.y), make_float2(p.z, p.w)))
KERNEL(volume, r = tex3D<float4>(t, p.x, p.y, p.z); r.x += tex3DLod<float>(t, p.y, p.z, p.x, p.w))
KERNEL(layers, r = tex2DLayered<float4>(t, p.x, p.y, (int)p.w); r.x += tex2DLayeredLod<float>(t, p.y, p.x, (int)p.z, p.w);
       r.y += tex2DLayeredGrad<float>(t, p.x, p.z, (int)p.w, make_float2(p.x, p.y), make_float2(p.z, p.w)))
KERNEL(rows, r.x = tex1DLayered<float>(t, p.x, (int)p.w); r.y = tex1DLayeredLod<float>(t, p.y, (int)p.z, p.w);
       r.z = tex1DLayeredGrad<float>(t, p.z, (int)p.x, p.y, p.w))
KERNEL(cubes, r.x = texCubemap<float>(t, p.x, p.y, p.z); r.y = texCubemapLayered<float>(t, p.x, p.y, p.z, (int)p.w);
       r.z = texCubemapLayeredLod<float>(t, p.y, p.x, p.z, (int)p.w, p.x))
extern "C" __global__ void several(const cudaTextureObject_t *all, const float4 *in, float4 *out) {
    float4 p = in[AT];
    out[AT] = tex2D<float4>(all[AT & 1], p.x, p.y);
}
extern "C" __global__ void surfaces(cudaSurfaceObject_t t, const float4 *in, float4 *out) {
    float4 p = in[AT];
    int x = p.x, y = p.y;
    float4 r;
    r.x = surf2Dread<float>(t, 4 * x, y, cudaBoundaryModeZero);
    r.y = surf2Dread<unsigned short>(t, 2 * x, y, cudaBoundaryModeClamp);
    r.z = surf2Dread<signed char>(t, x, y, cudaBoundaryModeZero);
    r.w = surf2Dread<float2>(t, 8 * x, y, cudaBoundaryModeZero).y;
    out[AT] = r;
    // Each thread has a place of its own.
    surf2Dwrite(p.z, t, 4 * (int)AT, 40, cudaBoundaryModeTrap);
    surf2Dwrite((unsigned char)x, t, AT, 41, cudaBoundaryModeZero);
    int fourth = y;
    asm volatile("sust.p.2d.v4.b32.zero [%0, {%1, %2}], {%3, %3, %4, %4};" ::"l"(t), "r"((int)AT), "r"(42), "r"(x),
                 "r"(fourth));
}
extern "C" __global__ void slices(cudaSurfaceObject_t t, const float4 *in, float4 *out) {
    float4 p = in[AT];
    int x = p.x, y = p.y, z = p.z;
    float4 r = {0, 0, 0, 0};
    r.x = surf3Dread<float>(t, 4 * x, y, z, cudaBoundaryModeClamp);
    r.y = surf2DLayeredread<float>(t, 4 * x, y, z, cudaBoundaryModeClamp);
    r.z = surf1DLayeredread<float>(t, 4 * x, z, cudaBoundaryModeClamp);
    out[AT] = r;
}
