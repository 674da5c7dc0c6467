// Graphs with conditional nodes and memory of their own, through both interfaces.
#include <cstdio>
#include <cuda.h>
#include <cuda_runtime.h>

#define CHECK(call) do { int code = (int)(call); if (code) { printf("%s: %d\n", #call, code); return 1; } } while (0)

typedef cudaGraphConditionalHandle Handle;

__global__ void count(Handle handle, int *counter, int end) { cudaGraphSetConditional(handle, ++*counter < end); }
__global__ void set(Handle handle, unsigned value) { cudaGraphSetConditional(handle, value); }
__global__ void add(int *counter, int value) { *counter += value; }
__global__ void all_set(Handle handle) { cudaGraphSetConditional(handle, threadIdx.x); }

static int read(int *counter) {
  int value = -1;
  cudaMemcpy(&value, counter, sizeof value, cudaMemcpyDeviceToHost);
  return value;
}

static cudaGraph_t *conditional(cudaGraph_t graph, Handle handle, cudaGraphConditionalNodeType type, unsigned bodies,
                                cudaGraphNode_t *before = nullptr) {
  cudaGraphNodeParams wanted = {cudaGraphNodeTypeConditional};
  wanted.conditional.handle = handle;
  wanted.conditional.type = type;
  wanted.conditional.size = bodies;
  cudaGraphNode_t node;
  const cudaError_t added = cudaGraphAddNode(&node, graph, before, nullptr, before ? 1 : 0, &wanted);
  return added ? nullptr : wanted.conditional.phGraph_out;
}

static cudaError_t add_kernel(cudaGraph_t graph, void *function, void **arguments) {
  cudaGraphNodeParams wanted = {cudaGraphNodeTypeKernel};
  wanted.kernel.func = function;
  wanted.kernel.gridDim = wanted.kernel.blockDim = dim3(1);
  wanted.kernel.kernelParams = arguments;
  cudaGraphNode_t node;
  return cudaGraphAddNode(&node, graph, nullptr, nullptr, 0, &wanted);
}

static int loops(cudaStream_t stream, int *counter) {
  cudaGraph_t graph;
  cudaGraphExec_t executable;
  Handle handle;
  CHECK(cudaGraphCreate(&graph, 0));
  CHECK(cudaGraphConditionalHandleCreate(&handle, graph, 1, cudaGraphCondAssignDefault));
  cudaGraph_t *bodies = conditional(graph, handle, cudaGraphCondTypeWhile, 1);
  CHECK(cudaStreamBeginCaptureToGraph(stream, bodies[0], nullptr, nullptr, 0, cudaStreamCaptureModeRelaxed));
  count<<<1, 1, 0, stream>>>(handle, counter, 10);
  CHECK(cudaStreamEndCapture(stream, nullptr));
  CHECK(cudaGraphInstantiate(&executable, graph, 0));
  CHECK(cudaGraphDestroy(graph));
  CHECK(cudaGraphLaunch(executable, stream));
  CHECK(cudaStreamSynchronize(stream));
  printf("loop %d", read(counter));
  // The default begins each launch: the body runs once more.
  CHECK(cudaGraphLaunch(executable, stream));
  CHECK(cudaStreamSynchronize(stream));
  printf(" again %d\n", read(counter));
  return cudaGraphExecDestroy(executable);
}

static int chooses(cudaStream_t stream, int *counter, cudaGraphConditionalNodeType type, unsigned bodies) {
  cudaGraph_t graph;
  cudaGraphExec_t executable;
  Handle handle;
  CHECK(cudaGraphCreate(&graph, 0));
  CHECK(cudaGraphConditionalHandleCreate(&handle, graph));
  printf(type == cudaGraphCondTypeIf ? "if %u:" : "switch %u:", bodies);
  unsigned value = 0;
  void *arguments[] = {&handle, &value};
  cudaGraphNode_t first;
  cudaKernelNodeParams setting = {(void *)set, dim3(1), dim3(1), 0, arguments};
  CHECK(cudaGraphAddKernelNode(&first, graph, nullptr, 0, &setting));
  cudaGraph_t *parts = conditional(graph, handle, type, bodies, &first);
  for (unsigned i = 0; i < bodies; i++) {
    int amount = i ? 10 * i : 1;
    void *adding[] = {&counter, &amount};
    CHECK(add_kernel(parts[i], (void *)add, adding));
  }
  for (value = 0; value < 3; value++) {
    CHECK(cudaGraphKernelNodeSetParams(first, &setting));
    CHECK(cudaGraphInstantiate(&executable, graph, 0));
    CHECK(cudaMemset(counter, 0, sizeof(int)));
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaGraphLaunch(executable, stream));
    CHECK(cudaStreamSynchronize(stream));
    printf(" %d", read(counter));
    CHECK(cudaGraphExecDestroy(executable));
  }
  printf("\n");
  return 0;
}

static int refusals() {
  cudaGraph_t graph, parent;
  Handle handle;
  CHECK(cudaGraphCreate(&graph, 0));
  CHECK(cudaGraphCreate(&parent, 0));
  CHECK(cudaGraphConditionalHandleCreate(&handle, graph));
  printf("two bodies of a loop %s\n", conditional(graph, handle, cudaGraphCondTypeWhile, 2) ? "taken" : "refused");
  conditional(graph, handle, cudaGraphCondTypeIf, 1);
  cudaGraphNode_t node;
  printf("child %s\n", cudaGetErrorName(cudaGraphAddChildGraphNode(&node, parent, nullptr, 0, graph)));
  int *word;
  CHECK(cudaMalloc(&word, sizeof(int)));
  cudaMemsetParams filling = {word, 0, 7, 4, 1, 1};
  CHECK(cudaGraphAddMemsetNode(&node, parent, nullptr, 0, &filling));
  printf("copy into a fill %s\n", cudaGetErrorName(cudaGraphMemcpyNodeSetParams1D(node, word, word, 4, cudaMemcpyDeviceToDevice)));
  CHECK(cudaGraphMemsetNodeSetParams(node, &filling));
  return 0;
}

static unsigned long long memory(cudaGraphMemAttributeType which) {
  unsigned long long value = ~0ull;
  cudaDeviceGetGraphMemAttribute(0, which, &value);
  return value;
}

static void print_memory(const char *when) {
  printf("%s: used %llu of %llu, reserved %llu of %llu\n", when, memory(cudaGraphMemAttrUsedMemCurrent),
         memory(cudaGraphMemAttrUsedMemHigh), memory(cudaGraphMemAttrReservedMemCurrent),
         memory(cudaGraphMemAttrReservedMemHigh));
}

static int memory_of_graphs(cudaStream_t stream) {
  cudaGraph_t graph;
  cudaGraphExec_t executable;
  int *first, *second;
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  CHECK(cudaMallocAsync(&first, 4096, stream));
  CHECK(cudaMemsetAsync(first, 0, 4096, stream));
  CHECK(cudaFreeAsync(first, stream));
  CHECK(cudaMallocAsync(&second, 1024, stream));
  CHECK(cudaMemsetAsync(second, 0, 1024, stream));
  CHECK(cudaStreamEndCapture(stream, &graph));
  CHECK(cudaGraphInstantiate(&executable, graph, 0));
  print_memory("created");
  CHECK(cudaGraphLaunch(executable, stream));
  CHECK(cudaStreamSynchronize(stream));
  print_memory("launched");
  CHECK(cudaDeviceGraphMemTrim(0));
  print_memory("trimmed");
  CHECK(cudaFree(second));
  unsigned long long zero = 0;
  CHECK(cudaDeviceSetGraphMemAttribute(0, cudaGraphMemAttrUsedMemHigh, &zero));
  print_memory("freed");
  CHECK(cudaDeviceGraphMemTrim(0));
  print_memory("trimmed");
  printf("set %s\n", cudaGetErrorName(cudaDeviceSetGraphMemAttribute(0, cudaGraphMemAttrUsedMemCurrent, &zero)));
  return 0;
}

static int driver(int *counter) {
  void *found;
  cudaDriverEntryPointQueryResult result;
  CHECK(cudaGetDriverEntryPointByVersion("cuGraphConditionalHandleCreate", &found, 12030, cudaEnableDefault, &result));
  auto create = (CUresult(*)(CUgraphConditionalHandle *, CUgraph, CUcontext, unsigned, unsigned))found;
  CHECK(cudaGetDriverEntryPointByVersion("cuGraphAddNode", &found, 12030, cudaEnableDefault, &result));
  auto add_node = (CUresult(*)(CUgraphNode *, CUgraph, const CUgraphNode *, const CUgraphEdgeData *, size_t, CUgraphNodeParams *))found;
  CHECK(cudaGetDriverEntryPointByVersion("cuGraphCreate", &found, 12030, cudaEnableDefault, &result));
  auto make = (CUresult(*)(CUgraph *, unsigned))found;
  CUgraph graph;
  CUgraphNode node;
  CUgraphConditionalHandle handle;
  CHECK(make(&graph, 0));
  CHECK(create(&handle, graph, nullptr, 2, CU_GRAPH_COND_ASSIGN_DEFAULT));
  CUgraphNodeParams wanted = {CU_GRAPH_NODE_TYPE_CONDITIONAL};
  wanted.conditional.handle = handle;
  wanted.conditional.type = CU_GRAPH_COND_TYPE_SWITCH;
  wanted.conditional.size = 3;
  CHECK(add_node(&node, graph, nullptr, nullptr, 0, &wanted));
  CUgraphNodeParams fill = {CU_GRAPH_NODE_TYPE_MEMSET};
  fill.memset.dst = (CUdeviceptr)counter;
  fill.memset.value = 77;
  fill.memset.elementSize = 4;
  fill.memset.width = fill.memset.height = 1;
  CHECK(add_node(&node, wanted.conditional.phGraph_out[2], nullptr, nullptr, 0, &fill));
  CHECK(cudaGetDriverEntryPointByVersion("cuGraphInstantiateWithFlags", &found, 12030, cudaEnableDefault, &result));
  CUgraphExec executable;
  CHECK(((CUresult(*)(CUgraphExec *, CUgraph, unsigned long long))found)(&executable, graph, 0));
  CHECK(cudaGetDriverEntryPointByVersion("cuGraphLaunch", &found, 12030, cudaEnableDefault, &result));
  CHECK(((CUresult(*)(CUgraphExec, CUstream))found)(executable, nullptr));
  CHECK(cudaDeviceSynchronize());
  printf("driver %d\n", read(counter));
  return 0;
}

int main(int count, char **) {
  cudaStream_t stream;
  int *counter;
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  CHECK(cudaMalloc(&counter, sizeof(int)));
  CHECK(cudaMemset(counter, 0, sizeof(int)));
  CHECK(cudaDeviceSynchronize());
  if (count > 1) {
    cudaGraph_t graph;
    Handle handle;
    CHECK(cudaGraphCreate(&graph, 0));
    CHECK(cudaGraphConditionalHandleCreate(&handle, graph));
    all_set<<<1, 2>>>(handle);
    return cudaDeviceSynchronize();
  }
  return loops(stream, counter) || chooses(stream, counter, cudaGraphCondTypeIf, 1) ||
         chooses(stream, counter, cudaGraphCondTypeIf, 2) || chooses(stream, counter, cudaGraphCondTypeSwitch, 2) ||
         refusals() || memory_of_graphs(stream) || driver(counter);
}
