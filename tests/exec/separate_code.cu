// Machine code of several sections: calls of another file, pointers to functions, virtual functions, variables and
// pointers to them, printf.
#include <cstdio>

typedef int (*Function)(int);

__device__ __noinline__ int one_more(int x) { return x + 1; }
__device__ __noinline__ int thrice(int x) { return x * 3; }
__device__ Function table[2] = {one_more, thrice};
__device__ int data[4] = {5, 6, 7, 8};
__device__ int *pointer = data + 2;
__constant__ int factors[2] = {10, 20};

struct Base {
  __device__ virtual int apply(int) = 0;
};
struct Near : Base {
  __device__ int apply(int x) { return x + 100; }
};
struct Far : Base {
  __device__ int apply(int x) { return x + 200; }
};

__device__ int from_other(int);

__global__ void call(int *x) { x[threadIdx.x] = from_other(x[threadIdx.x]); }
__global__ void choose(int *x) { x[threadIdx.x] = table[threadIdx.x & 1](x[threadIdx.x]); }
__global__ void dispatch(int *x) {
  Near near;
  Far far;
  Base *base = x[threadIdx.x] & 1 ? (Base *)&near : (Base *)&far;
  x[threadIdx.x] = base->apply(x[threadIdx.x]);
}
__global__ void read(int *x) {
  x[threadIdx.x] += *pointer * factors[threadIdx.x & 1];
  if (threadIdx.x == 0) printf("printed\n");
}

template <typename Kernel>
void run(const char *name, Kernel kernel) {
  int *x, host[4] = {1, 2, 3, 4};
  cudaMalloc(&x, sizeof(host));
  cudaMemcpy(x, host, sizeof(host), cudaMemcpyHostToDevice);
  kernel<<<1, 4>>>(x);
  printf("%s %s", name, cudaGetErrorName(cudaDeviceSynchronize()));
  cudaMemcpy(host, x, sizeof(host), cudaMemcpyDeviceToHost);
  for (int value : host) printf(" %d", value);
  printf("\n");
}

int main() {
  run("call", call);
  run("choose", choose);
  run("dispatch", dispatch);
  run("read", read);
}
