// Events of a launch that another stream waits for; the argument is the attribute.
#include <cstdio>
#include <cstring>
__global__ void fill(int *x) { x[threadIdx.x] = 1; }
int main(int, char **arguments) {
  const char *mode = arguments[1];
  cudaStream_t s, t; cudaEvent_t e; int *x;
  cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking); cudaStreamCreateWithFlags(&t, cudaStreamNonBlocking);
  cudaEventCreateWithFlags(&e, cudaEventDisableTiming);
  cudaMalloc(&x, 128);
  cudaLaunchAttribute a = {};
  if (!strcmp(mode, "completion")) {
    a.id = cudaLaunchAttributeLaunchCompletionEvent; a.val.launchCompletionEvent.event = e;
  } else {
    a.id = cudaLaunchAttributeProgrammaticEvent; a.val.programmaticEvent.event = e;
    a.val.programmaticEvent.triggerAtBlockStart = !strcmp(mode, "start");
  }
  cudaLaunchConfig_t c = {}; c.gridDim = 1; c.blockDim = 32; c.stream = s; c.attrs = &a; c.numAttrs = 1;
  printf("%d", cudaLaunchKernelEx(&c, fill, x));
  cudaStreamWaitEvent(t, e, 0);
  cudaMemsetAsync(x, 0, 128, t);
  printf(" %d\n", cudaDeviceSynchronize());
}
