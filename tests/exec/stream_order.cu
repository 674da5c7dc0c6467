// Memory that host and device share, in operations of two streams; the argument names the case.
#include <cstdlib>
#include <cstring>
#include <cuda_runtime.h>

__global__ void write(int *to) { to[threadIdx.x] = 1; }
__global__ void read(const int *from, int *to) { to[threadIdx.x] = from[threadIdx.x]; }

int main(int, char **arguments) {
  const size_t bytes = 128;
  int *device, *result, *pinned, *managed;
  auto *registered = (int *)aligned_alloc(4096, 4096);
  cudaStream_t one, two, free_running;
  cudaMalloc(&device, bytes);
  cudaMalloc(&result, bytes);
  cudaMallocHost(&pinned, bytes);
  cudaMallocManaged(&managed, bytes);
  cudaHostRegister(registered, 4096, 0);
  memset(registered, 0, 4096);
  cudaMemset(device, 0, bytes);
  cudaDeviceSynchronize();
  cudaStreamCreate(&one);
  cudaStreamCreate(&two);
  cudaStreamCreateWithFlags(&free_running, cudaStreamNonBlocking);
  const auto is = [&](const char *name) { return !strcmp(arguments[1], name); };
  if (is("pinned") || is("registered")) {
    // The host waits for a copy from page-locked memory.
    cudaMemcpy(device, is("pinned") ? pinned : registered, bytes, cudaMemcpyHostToDevice);
    read<<<1, 32, 0, free_running>>>(device, result);
  } else if (is("pageable")) {
    memset(result = (int *)malloc(bytes), 0, bytes);
    cudaMemcpy(device, result, bytes, cudaMemcpyHostToDevice);
    read<<<1, 32, 0, free_running>>>(device, pinned);
  } else if (is("through")) {
    cudaMemcpyAsync(pinned, device, bytes, cudaMemcpyDeviceToHost, one);
    cudaMemcpyAsync(result, pinned, bytes, cudaMemcpyHostToDevice, two);
  } else if (is("written")) {
    write<<<1, 32, 0, one>>>(pinned);
    cudaMemcpyAsync(device, pinned, bytes, cudaMemcpyHostToDevice, two);
  } else if (is("same")) {
    write<<<1, 32, 0, one>>>(pinned);
    cudaMemcpyAsync(device, pinned, bytes, cudaMemcpyHostToDevice, one);
  } else if (is("filled")) {
    cudaMemset(managed, 0, bytes);
    read<<<1, 32, 0, free_running>>>(managed, result);
  } else {
    cudaMemsetAsync(managed, 0, bytes, two);
    read<<<1, 32, 0, one>>>(managed, result);
  }
  return cudaDeviceSynchronize();
}
