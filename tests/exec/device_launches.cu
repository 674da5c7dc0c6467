// Kernels that launch kernels: order, nesting, errors, copies and fills.
#include <cstdio>
#include <cstring>

__global__ void append(int *log, int value) { log[1 + log[0]++] = value; }

__global__ void descend(int *log, int depth) {
  append<<<1, 1>>>(log, depth);
  if (depth < 3) descend<<<1, 1>>>(log, depth + 1);
}

__global__ void add(int *x, int n, int value) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] += value;
}

struct Scale {
  char shift;
  double factor;
};

template <typename T>
__global__ void scale(T *x, int n, Scale by) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] = x[i] * by.factor + by.shift;
}

__global__ void start(int *log, int *x, int *y, int n) {
  int t = threadIdx.x;
  x[t] = t;
  __syncthreads();
  if (t != 0) return;
  append<<<1, 1, 0, cudaStreamTailLaunch>>>(log, 99);
  cudaStream_t stream;
  cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  cudaMemsetAsync(y, 0, n * sizeof(int), stream);
  add<<<(n + 31) / 32, 32, 0, stream>>>(y, n, 7);
  cudaStreamDestroy(stream);
  scale<int><<<n / 32, 32>>>(x, n, Scale{5, 2.0});
  cudaMemcpyAsync(y + n, x, n * sizeof(int), cudaMemcpyDeviceToDevice, cudaStreamFireAndForget);
  append<<<1, 2048>>>(log, -1);
  cudaError_t error = cudaGetLastError();
  printf("%s %s, then %d\n", cudaGetErrorName(error), cudaGetErrorString(error), cudaGetLastError());
  descend<<<1, 1>>>(log, 1);
}

__global__ void deep(int *reached, int depth) {
  *reached = depth;
  deep<<<1, 1>>>(reached, depth + 1);
}

__global__ void set(volatile int *flag) { *flag = 1; }

__global__ void wait(volatile int *flag) {
  set<<<1, 1>>>(flag);
  while (*flag == 0) {
  }
}

__global__ void wrong(int *x, int n) { add<<<1, 64>>>(x, n + 1, 1); }

int main(int count, char **arguments) {
  const int n = 256;
  int *log, *x, *y, host[2 * n];
  cudaMalloc(&log, 16 * sizeof(int));
  cudaMalloc(&x, n * sizeof(int));
  cudaMalloc(&y, 2 * n * sizeof(int));
  cudaMemset(log, 0, sizeof(int));
  start<<<1, n>>>(log, x, y, n);
  printf("%s\n", cudaGetErrorName(cudaDeviceSynchronize()));
  cudaMemcpy(host, log, 16 * sizeof(int), cudaMemcpyDeviceToHost);
  for (int i = 0; i < host[0]; i++) printf("%d ", host[1 + i]);
  cudaMemcpy(host, y, sizeof(host), cudaMemcpyDeviceToHost);
  printf("| %d %d %d\n", host[n - 1], host[n], host[2 * n - 1]);
  deep<<<1, 1>>>(log, 0);
  cudaMemcpy(host, log, sizeof(int), cudaMemcpyDeviceToHost);
  printf("depth %d\n", host[0]);
  if (count > 1 && !strcmp(arguments[1], "wait")) {
    cudaMemset(log, 0, sizeof(int));
    wait<<<1, 1>>>(log);
    printf("%s\n", cudaGetErrorName(cudaDeviceSynchronize()));
  }
  if (count > 1 && !strcmp(arguments[1], "wrong")) {
    int *small;
    cudaMalloc(&small, 40 * sizeof(int));
    cudaMemset(small, 0, 40 * sizeof(int));
    wrong<<<1, 1>>>(small, 40);
    printf("%s\n", cudaGetErrorName(cudaDeviceSynchronize()));
  }
}
