// Memory of a pool that two streams use; the argument is the case.
#include <cstdio>
#include <cstring>
__global__ void fill(int *x) { x[threadIdx.x] = 1; }
int main(int, char **arguments) {
  const char *mode = arguments[1];
  cudaStream_t s, t; cudaEvent_t e; int *x;
  cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking); cudaStreamCreateWithFlags(&t, cudaStreamNonBlocking);
  cudaEventCreate(&e);
  cudaMallocAsync(&x, 128, s);
  if (strcmp(mode, "use")) cudaEventRecord(e, s), cudaStreamWaitEvent(t, e, 0);
  fill<<<1, 32, 0, t>>>(x);
  if (!strcmp(mode, "host")) cudaStreamSynchronize(t);
  if (!strcmp(mode, "event")) cudaEventRecord(e, t), cudaStreamWaitEvent(s, e, 0);
  cudaFreeAsync(x, strcmp(mode, "same") ? s : t);
  printf("%d\n", cudaDeviceSynchronize());
}
