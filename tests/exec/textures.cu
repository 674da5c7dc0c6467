// A texture of each kind against the formulas of the programming guide.
#include <cstdio>
#include <cmath>
#include <vector>
#include <cuda.h>
#include <cudaTypedefs.h>
#define OK(x) do { cudaError_t e_ = (x); if (e_) { printf("%s: %s\n", #x, cudaGetErrorString(e_)); return 1; } } while (0)
__global__ void plane(cudaTextureObject_t t, float *o, int w, int h, float s) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;
  if (x < w) o[y * w + x] = tex2D<float>(t, (x + 0.25f) * s, (y + 0.5f) * s);
}
__global__ void bytes(cudaTextureObject_t t, float4 *o) { o[threadIdx.x] = tex2D<float4>(t, threadIdx.x + 0.5f, 0.5f); }
__global__ void lines(cudaTextureObject_t t, int *o) { o[threadIdx.x] = tex1Dfetch<int>(t, (int)threadIdx.x - 1); }
__global__ void volume(cudaTextureObject_t t, float *o) { o[threadIdx.x] = tex3D<float>(t, threadIdx.x + 0.5f, 1.0f, 1.0f); }
__global__ void layers(cudaTextureObject_t t, float *o) { o[threadIdx.x] = tex2DLayered<float>(t, 0.5f, 0.5f, threadIdx.x); }
__global__ void fill(cudaSurfaceObject_t s, int w) {
  int x = threadIdx.x, y = blockIdx.x; float4 v = make_float4(x, y, x + y, 1);
  if (x < w) surf2Dwrite(v, s, x * 16, y);
}
__global__ void row(cudaTextureObject_t t, float *o) { o[threadIdx.x] = tex1D<float>(t, threadIdx.x - 0.5f); }
static cudaTextureDesc rules(cudaTextureAddressMode mode, cudaTextureFilterMode filter, cudaTextureReadMode read, int normalized) {
  cudaTextureDesc d = {};
  d.addressMode[0] = d.addressMode[1] = d.addressMode[2] = mode; d.filterMode = filter; d.readMode = read; d.normalizedCoords = normalized;
  return d;
}
static cudaResourceDesc of(cudaArray_t a) { cudaResourceDesc r = {}; r.resType = cudaResourceTypeArray; r.res.array.array = a; return r; }
// The same objects through the driver interface.
static int driver(float *o, const float *h) {
  void *found; cudaDriverEntryPointQueryResult result;
#define ENTRY(name, version) cudaGetDriverEntryPointByVersion(#name, &found, version, cudaEnableDefault, &result); auto name##_ = (PFN_##name##_v##version)found
  ENTRY(cuArrayCreate, 3020); ENTRY(cuMemcpyHtoA, 3020); ENTRY(cuTexObjectCreate, 5000); ENTRY(cuTexObjectDestroy, 5000); ENTRY(cuArrayDestroy, 2000);
  CUarray a; CUDA_ARRAY_DESCRIPTOR shape = {4, 0, CU_AD_FORMAT_FLOAT, 1};
  if (int e = cuArrayCreate_(&a, &shape)) return e;
  if (int e = cuMemcpyHtoA_(a, 0, h, 16)) return e;
  CUDA_RESOURCE_DESC r = {}; r.resType = CU_RESOURCE_TYPE_ARRAY; r.res.array.hArray = a;
  CUDA_TEXTURE_DESC t = {}; t.addressMode[0] = CU_TR_ADDRESS_MODE_BORDER; t.borderColor[0] = 5;
  CUtexObject tex; if (int e = cuTexObjectCreate_(&tex, &r, &t, 0)) return e;
  row<<<1, 6>>>(tex, o); float got[6]; cudaMemcpy(got, o, 24, cudaMemcpyDeviceToHost);
  printf("driver %g %g %g %g %g %g\n", got[0], got[1], got[2], got[3], got[4], got[5]);
  if (int e = cuTexObjectDestroy_(tex)) return e;
  printf("destroyed twice %d\n", cuTexObjectDestroy_(tex));
  return cuArrayDestroy_(a);
}
int main() {
  const int W = 40, H = 6;
  std::vector<float> h(W * H), got(W * H); for (int i = 0; i < W * H; i++) h[i] = i * 4;
  cudaArray_t a; auto f = cudaCreateChannelDesc<float>();
  OK(cudaMallocArray(&a, &f, W, H)); OK(cudaMemcpy2DToArray(a, 0, 0, h.data(), W * 4, W * 4, H, cudaMemcpyHostToDevice));
  cudaChannelFormatDesc d; cudaExtent e; unsigned flags; OK(cudaArrayGetInfo(&d, &e, &flags, a));
  printf("array %zu %zu %zu, %d bits\n", e.width, e.height, e.depth, d.x);
  auto r = of(a); auto t = rules(cudaAddressModeClamp, cudaFilterModeLinear, cudaReadModeElementType, 0);
  cudaTextureObject_t tex; OK(cudaCreateTextureObject(&tex, &r, &t, 0));
  float *o; OK(cudaMalloc(&o, W * H * 16));
  plane<<<dim3(1, H), 64>>>(tex, o, W, H, 1); OK(cudaMemcpy(got.data(), o, W * H * 4, cudaMemcpyDeviceToHost));
  int wrong = 0; for (int y = 0; y < H; y++) for (int x = 0; x < W; x++) { float v = y * W * 4 + (x ? 4 * x - 1 : 0); wrong += got[y * W + x] != v; }
  printf("linear %d wrong\n", wrong); OK(cudaDestroyTextureObject(tex));
  float *p; size_t pitch; OK(cudaMallocPitch(&p, &pitch, W * 4, H)); OK(cudaMemcpy2D(p, pitch, h.data(), W * 4, W * 4, H, cudaMemcpyHostToDevice));
  cudaResourceDesc q = {}; q.resType = cudaResourceTypePitch2D; q.res.pitch2D.devPtr = p; q.res.pitch2D.desc = f; q.res.pitch2D.width = W; q.res.pitch2D.height = H; q.res.pitch2D.pitchInBytes = pitch;
  t = rules(cudaAddressModeWrap, cudaFilterModePoint, cudaReadModeElementType, 1); OK(cudaCreateTextureObject(&tex, &q, &t, 0));
  plane<<<dim3(1, H), 64>>>(tex, o, W, H, 2.0f / W); OK(cudaMemcpy(got.data(), o, W * H * 4, cudaMemcpyDeviceToHost));
  wrong = 0; for (int x = 0; x < W; x++) wrong += got[x] != h[(2 * x) % W]; printf("pitched %d wrong\n", wrong);
  OK(cudaDestroyTextureObject(tex));
  auto b = cudaCreateChannelDesc<uchar4>(); cudaArray_t c; OK(cudaMallocArray(&c, &b, 2, 1));
  unsigned char raw[8] = {0, 51, 102, 255, 1, 2, 3, 4}; OK(cudaMemcpyToArray(c, 0, 0, raw, 8, cudaMemcpyHostToDevice));
  r = of(c); t = rules(cudaAddressModeClamp, cudaFilterModePoint, cudaReadModeNormalizedFloat, 0); OK(cudaCreateTextureObject(&tex, &r, &t, 0));
  bytes<<<1, 2>>>(tex, (float4 *)o); OK(cudaMemcpy(got.data(), o, 32, cudaMemcpyDeviceToHost));
  printf("bytes %.3f %.3f %.3f %.3f\n", got[0], got[1], got[2], got[3]); OK(cudaDestroyTextureObject(tex)); OK(cudaFreeArray(c));
  int *n; OK(cudaMalloc(&n, 16)); int four[4] = {5, 6, 7, 8}, six[6]; OK(cudaMemcpy(n, four, 16, cudaMemcpyHostToDevice));
  cudaResourceDesc l = {}; l.resType = cudaResourceTypeLinear; l.res.linear.devPtr = n; l.res.linear.desc = cudaCreateChannelDesc<int>(); l.res.linear.sizeInBytes = 16;
  t = rules(cudaAddressModeClamp, cudaFilterModePoint, cudaReadModeElementType, 0); OK(cudaCreateTextureObject(&tex, &l, &t, 0));
  lines<<<1, 6>>>(tex, (int *)o); OK(cudaMemcpy(six, o, 24, cudaMemcpyDeviceToHost)); printf("line %d %d %d %d %d %d\n", six[0], six[1], six[2], six[3], six[4], six[5]);
  cudaArray_t v; OK(cudaMalloc3DArray(&v, &f, make_cudaExtent(4, 2, 2))); cudaMemcpy3DParms m = {};
  m.srcPtr = make_cudaPitchedPtr(h.data(), 16, 4, 2); m.dstArray = v; m.extent = make_cudaExtent(4, 2, 2); m.kind = cudaMemcpyHostToDevice; OK(cudaMemcpy3D(&m));
  r = of(v); t.filterMode = cudaFilterModeLinear; cudaTextureObject_t tv; OK(cudaCreateTextureObject(&tv, &r, &t, 0));
  volume<<<1, 4>>>(tv, o); OK(cudaMemcpy(got.data(), o, 16, cudaMemcpyDeviceToHost)); printf("volume %g %g %g %g\n", got[0], got[1], got[2], got[3]);
  cudaArray_t y; OK(cudaMalloc3DArray(&y, &f, make_cudaExtent(2, 2, 3), cudaArrayLayered)); m.dstArray = y; m.srcPtr = make_cudaPitchedPtr(h.data(), 8, 2, 2); m.extent = make_cudaExtent(2, 2, 3); OK(cudaMemcpy3D(&m));
  r = of(y); t.filterMode = cudaFilterModePoint; OK(cudaCreateTextureObject(&tv, &r, &t, 0)); layers<<<1, 3>>>(tv, o); OK(cudaMemcpy(got.data(), o, 12, cudaMemcpyDeviceToHost)); printf("layers %g %g %g\n", got[0], got[1], got[2]);
  auto f4 = cudaCreateChannelDesc<float4>(); cudaArray_t s; OK(cudaMallocArray(&s, &f4, W, H, cudaArraySurfaceLoadStore)); r = of(s);
  cudaSurfaceObject_t surf; OK(cudaCreateSurfaceObject(&surf, &r)); fill<<<H, 64>>>(surf, W);
  std::vector<float4> back(W * H); OK(cudaMemcpy2DFromArray(back.data(), W * 16, s, 0, 0, W * 16, H, cudaMemcpyDeviceToHost));
  wrong = 0; for (int i = 0; i < W * H; i++) wrong += back[i].x != i % W || back[i].y != i / W || back[i].z != i % W + i / W; printf("surface %d wrong\n", wrong);
  t.filterMode = cudaFilterModeLinear; r = l; r.resType = cudaResourceTypeArray; OK(cudaMallocArray(&c, &b, 2, 1)); r = of(c); printf("integers filtered %s\n", cudaGetErrorName(cudaCreateTextureObject(&tex, &r, &t, 0)));
  r = of(a); printf("surface of a plain array %s\n", cudaGetErrorName(cudaCreateSurfaceObject(&surf, &r)));
  cudaMipmappedArray_t mip; printf("mipmap %s\n", cudaGetErrorName(cudaMallocMipmappedArray(&mip, &f, make_cudaExtent(4, 4, 0), 2)));
  printf("beyond %s\n", cudaGetErrorName(cudaMemcpy2DToArray(a, 0, 1, h.data(), W * 4, W * 4, H, cudaMemcpyHostToDevice)));
  return driver(o, h.data());
}
