// Dependencies of graphs: what they order, and what a program can ask.
#include <cstdio>
#include <cstring>
#include <cuda_runtime.h>

#define CHECK(call) do { int code = (int)(call); if (code) { printf("%s: %d\n", #call, code); return 1; } } while (0)

__global__ void add(int *word, int value) { *word += value; }
__global__ void sum(int *to, const int *x, const int *y) { *to = *x + *y; }

static cudaGraphNode_t add_kernel(cudaGraph_t graph, int *word, int value, cudaGraphNode_t *before, size_t count) {
  void *arguments[] = {&word, &value};
  cudaKernelNodeParams wanted = {(void *)add, dim3(1), dim3(1), 0, arguments};
  cudaGraphNode_t node = nullptr;
  if (cudaGraphAddKernelNode(&node, graph, before, count, &wanted)) printf("not added\n");
  return node;
}

static int launch(cudaGraph_t graph, const int *words, int expected) {
  cudaGraphExec_t executable;
  cudaStream_t stream;
  int value;
  CHECK(cudaStreamCreate(&stream));
  CHECK(cudaGraphInstantiate(&executable, graph, 0));
  for (int i = 0; i < 2; i++) CHECK(cudaGraphLaunch(executable, stream));
  CHECK(cudaStreamSynchronize(stream));
  CHECK(cudaMemcpy(&value, words, sizeof value, cudaMemcpyDeviceToHost));
  printf("value %d, expected %d\n", value, expected);
  return 0;
}

// Two updates of one word, the second created first.
static int chain(int *words, bool ordered) {
  cudaGraph_t graph;
  CHECK(cudaGraphCreate(&graph, 0));
  cudaGraphNode_t second = add_kernel(graph, words, 2, nullptr, 0), first = add_kernel(graph, words, 1, nullptr, 0);
  if (ordered) CHECK(cudaGraphAddDependencies(graph, &first, &second, nullptr, 1));
  return launch(graph, words, 6);
}

static int questions(int *words) {
  cudaGraph_t graph;
  CHECK(cudaGraphCreate(&graph, 0));
  cudaGraphNode_t nodes[4], from[4], to[4], found[4];
  for (int i = 0; i < 3; i++) nodes[i] = add_kernel(graph, words + i, 1, nodes, i ? 1 : 0);
  nodes[3] = add_kernel(graph, words, 1, nodes + 1, 2);
  size_t roots = 4, before = 4, after = 4, edges = 4, room = 1;
  CHECK(cudaGraphGetRootNodes(graph, found, &roots));
  printf("roots %zu %d\n", roots, found[0] == nodes[0]);
  CHECK(cudaGraphNodeGetDependencies(nodes[3], found, nullptr, &before));
  printf("before %zu %d\n", before, found[0] == nodes[1] && found[1] == nodes[2]);
  CHECK(cudaGraphNodeGetDependentNodes(nodes[0], found, nullptr, &after));
  CHECK(cudaGraphNodeGetDependentNodes(nodes[0], found, nullptr, &room));
  printf("after %zu, with room for one %zu\n", after, room);
  CHECK(cudaGraphGetEdges(graph, from, to, nullptr, &edges));
  printf("edges %zu:", edges);
  for (size_t i = 0; i < edges; i++)
    for (int n = 0; n < 4; n++)
      for (int m = 0; m < 4; m++)
        if (from[i] == nodes[n] && to[i] == nodes[m]) printf(" %d-%d", n, m);
  CHECK(cudaGraphRemoveDependencies(graph, nodes, nodes + 1, nullptr, 1));
  CHECK(cudaGraphGetRootNodes(graph, nullptr, &roots));
  printf("\nremoved: roots %zu, again %d\n", roots, (int)cudaGraphRemoveDependencies(graph, nodes, nodes + 1, nullptr, 1));
  CHECK(cudaGraphAddDependencies(graph, nodes + 3, nodes + 1, nullptr, 1));
  cudaGraphExec_t executable;
  printf("circular %d\n", (int)cudaGraphInstantiate(&executable, graph, 0));
  return 0;
}

// A fork of two streams in a capture; `joins`: the first waits for the second before it reads.
static int fork(int *words, bool joins, bool late) {
  cudaStream_t one, two;
  cudaEvent_t forked, done;
  cudaGraph_t graph;
  CHECK(cudaStreamCreate(&one));
  CHECK(cudaStreamCreate(&two));
  CHECK(cudaEventCreate(&forked));
  CHECK(cudaEventCreate(&done));
  CHECK(cudaStreamBeginCapture(one, cudaStreamCaptureModeGlobal));
  CHECK(cudaEventRecord(forked, one));
  CHECK(cudaStreamWaitEvent(two, forked, 0));
  add<<<1, 1, 0, one>>>(words + 1, 1);
  add<<<1, 1, 0, two>>>(words + 2, 2);
  CHECK(cudaEventRecord(done, two));
  if (joins && !late) CHECK(cudaStreamWaitEvent(one, done, 0));
  sum<<<1, 1, 0, one>>>(words, words + 1, words + 2);
  if (joins && late) CHECK(cudaStreamWaitEvent(one, done, 0));
  const cudaError_t ended = cudaStreamEndCapture(one, &graph);
  if (ended) {
    printf("end %d\n", (int)ended);
    return 0;
  }
  return launch(graph, words, 6);
}

int main(int, char **arguments) {
  int *words;
  CHECK(cudaMalloc(&words, 16));
  CHECK(cudaMemset(words, 0, 16));
  const char *mode = arguments[1];
  if (!strcmp(mode, "chain")) return chain(words, true);
  if (!strcmp(mode, "unordered")) return chain(words, false);
  if (!strcmp(mode, "questions")) return questions(words);
  if (!strcmp(mode, "fork")) return fork(words, true, false);
  if (!strcmp(mode, "late")) return fork(words, true, true);
  return fork(words, false, false);
}
