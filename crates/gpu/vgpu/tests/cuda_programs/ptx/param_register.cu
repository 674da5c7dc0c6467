// nvcc -arch=sm_80 -std=c++17 -lineinfo -ptx param_register.cu
// A by-value struct indexed at run time: `mov.b64 %rd1, kernel_param_0; add; ld.param [%rd2]`.
struct Table { int v[64]; };
__device__ __noinline__ int at(const int *v, int i) { return v[i]; }
__device__ __noinline__ int of(Table t, int i) { return t.v[i]; }
__global__ void constant(const __grid_constant__ Table t, int *out) { out[threadIdx.x] = t.v[blockIdx.x * 32 + threadIdx.x]; }
__global__ void indexed(Table t, int *out) { out[threadIdx.x] = t.v[(threadIdx.x * 7) & 63]; }
__global__ void address(int *out, const __grid_constant__ Table t) { out[threadIdx.x] = at(t.v, threadIdx.x) + at(t.v + 3, 1) + of(t, threadIdx.x); }
__global__ void written(int *out, Table t) { t.v[threadIdx.x] = -1; out[threadIdx.x] = t.v[(threadIdx.x * 7) & 63] + t.v[threadIdx.x]; }
__global__ void outside(int *out, Table t) { out[threadIdx.x] = t.v[threadIdx.x + 64]; }
struct Pointers { int *p[4]; };
__global__ void pointers(Pointers p) { p.p[threadIdx.x & 3][threadIdx.x] = threadIdx.x; }
