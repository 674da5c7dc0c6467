// A graph whose last node waits for three others; the argument leaves one of these dependencies out.
#include <cstdio>
#include <cstdlib>

__global__ void set(int *x, int at) { x[at] = at + 1; }
__global__ void sum(int *x) { x[3] = x[0] + x[1] + x[2]; }

int main(int, char **arguments) {
  int *x, without = atoi(arguments[1]), value = -1;
  cudaGraph_t graph;
  cudaGraphExec_t executable;
  cudaGraphNode_t nodes[3], last;
  cudaMalloc(&x, 16);
  cudaMemset(x, 0, 16);
  cudaGraphCreate(&graph, 0);
  for (int at = 0; at < 3; at++) {
    void *passed[] = {&x, &at};
    cudaKernelNodeParams kernel = {(void *)set, 1, 1, 0, passed, nullptr};
    cudaGraphAddKernelNode(&nodes[at], graph, nullptr, 0, &kernel);
  }
  void *passed[] = {&x};
  cudaKernelNodeParams kernel = {(void *)sum, 1, 1, 0, passed, nullptr};
  cudaGraphNode_t before[3];
  int count = 0;
  for (int at = 0; at < 3; at++) if (at != without) before[count++] = nodes[at];
  cudaGraphAddKernelNode(&last, graph, before, count, &kernel);
  cudaGraphInstantiate(&executable, graph, 0);
  for (int i = 0; i < 2; i++) cudaGraphLaunch(executable, 0);
  cudaMemcpy(&value, x + 3, 4, cudaMemcpyDeviceToHost);
  printf("%d\n", value);
}
