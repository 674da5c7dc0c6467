// A thread with a stream of its own ends the program while a launch does not end.
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <unistd.h>
__global__ void spin(volatile int *p) { while (p[0] == 0) p[1] = p[1] + 1; }

int main() {
  int *p;
  cudaMalloc(&p, 8);
  cudaMemset(p, 0, 8);
  cudaDeviceSynchronize();
  std::thread watchdog([=] {
    cudaMemsetAsync(p, 0, 8, cudaStreamPerThread);
    cudaStreamSynchronize(cudaStreamPerThread);
    usleep(500000);
    puts("too long");
    exit(7);
  });
  usleep(200000);
  spin<<<1, 1>>>(p);
  cudaDeviceSynchronize();
  watchdog.join();
}
