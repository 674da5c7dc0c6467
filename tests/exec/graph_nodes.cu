// What a program asks about the nodes of its graphs and changes in them, and captures that an error ends.
#include <cstdio>
#include <cstring>
#include <cuda_runtime.h>

static int failed = 0;
#define EXPECT(expression, wanted) do { \
  long long got = (long long)(expression); \
  if (got != (long long)(wanted)) { failed = 1; printf("line %d: %s is %lld\n", __LINE__, #expression, got); } \
} while (0)
#define OK(call) EXPECT(call, cudaSuccess)

__global__ void fill(int *to, int value) { to[threadIdx.x] = value; }
__global__ void add(int *to, int value) { to[threadIdx.x] += value; }

static void count_call(void *argument) { ++*(int *)argument; }

struct Nodes { cudaGraph_t graph; cudaGraphNode_t fill, add, copy, host, set; };

static Nodes build(int *device, int *host, int *calls) {
  Nodes nodes;
  int value = 3;
  void *arguments[] = {&device, &value};
  cudaKernelNodeParams kernel = {(void *)fill, dim3(1), dim3(32), 0, arguments};
  OK(cudaGraphCreate(&nodes.graph, 0));
  OK(cudaGraphAddKernelNode(&nodes.fill, nodes.graph, nullptr, 0, &kernel));
  kernel.func = (void *)add;
  OK(cudaGraphAddKernelNode(&nodes.add, nodes.graph, &nodes.fill, 1, &kernel));
  OK(cudaGraphAddMemcpyNode1D(&nodes.copy, nodes.graph, &nodes.add, 1, host, device, 128, cudaMemcpyDeviceToHost));
  cudaHostNodeParams call = {count_call, calls};
  OK(cudaGraphAddHostNode(&nodes.host, nodes.graph, &nodes.copy, 1, &call));
  cudaMemsetParams set = {device, 0, 1, 4, 32, 1};
  OK(cudaGraphAddMemsetNode(&nodes.set, nodes.graph, &nodes.host, 1, &set));
  return nodes;
}

static void describe(const Nodes &nodes, int *device, int *host, int *calls) {
  cudaKernelNodeParams kernel = {};
  OK(cudaGraphKernelNodeGetParams(nodes.add, &kernel));
  EXPECT(kernel.func == (void *)add && kernel.blockDim.x == 32, true);
  EXPECT(*(int **)kernel.kernelParams[0] == device && *(int *)kernel.kernelParams[1] == 3, true);
  cudaMemcpy3DParms copy = {};
  OK(cudaGraphMemcpyNodeGetParams(nodes.copy, &copy));
  EXPECT(copy.dstPtr.ptr == host && copy.srcPtr.ptr == device && copy.kind == cudaMemcpyDeviceToHost, true);
  EXPECT(copy.extent.width, 128);
  cudaMemsetParams set = {};
  OK(cudaGraphMemsetNodeGetParams(nodes.set, &set));
  EXPECT(set.dst == device && set.width == 32 && set.elementSize == 4, true);
  cudaHostNodeParams call = {};
  OK(cudaGraphHostNodeGetParams(nodes.host, &call));
  EXPECT(call.fn == count_call && call.userData == calls, true);
  EXPECT(cudaGraphMemsetNodeGetParams(nodes.add, &set), cudaErrorInvalidValue);
  cudaKernelNodeAttrValue attribute = {};
  attribute.cooperative = 1;
  OK(cudaGraphKernelNodeSetAttribute(nodes.fill, cudaKernelNodeAttributeCooperative, &attribute));
  OK(cudaGraphKernelNodeCopyAttributes(nodes.fill, nodes.add));
  attribute.cooperative = 0;
  OK(cudaGraphKernelNodeGetAttribute(nodes.add, cudaKernelNodeAttributeCooperative, &attribute));
  EXPECT(attribute.cooperative, 1);
}

static void change(const Nodes &nodes, int *host, int *calls) {
  cudaGraphExec_t executable;
  unsigned enabled = 9;
  OK(cudaGraphInstantiate(&executable, nodes.graph, 0));
  for (int on = 1; on >= 0; on--) {
    OK(cudaGraphNodeSetEnabled(executable, nodes.add, on));
    OK(cudaGraphNodeGetEnabled(executable, nodes.add, &enabled));
    EXPECT(enabled, on);
    OK(cudaGraphLaunch(executable, 0));
    OK(cudaDeviceSynchronize());
    EXPECT(host[31], on ? 6 : 3);
  }
  EXPECT(*calls, 2);
  EXPECT(cudaGraphNodeSetEnabled(executable, nodes.host, 0), cudaErrorInvalidValue);
  // A node that a child graph has is changed in the executable graph by its own handle.
  cudaGraph_t parent, child;
  cudaGraphNode_t node, found[8];
  size_t count = 8;
  OK(cudaGraphCreate(&parent, 0));
  OK(cudaGraphAddChildGraphNode(&node, parent, nullptr, 0, nodes.graph));
  OK(cudaGraphChildGraphNodeGetGraph(node, &child));
  OK(cudaGraphGetNodes(child, found, &count));
  EXPECT(count, 5);
  cudaGraphExec_t nested;
  OK(cudaGraphInstantiate(&nested, parent, 0));
  cudaKernelNodeParams kernel = {};
  OK(cudaGraphKernelNodeGetParams(found[1], &kernel));
  int value = 40;
  void *arguments[] = {kernel.kernelParams[0], &value};
  kernel.kernelParams = arguments;
  OK(cudaGraphExecKernelNodeSetParams(nested, found[1], &kernel));
  OK(cudaGraphLaunch(nested, 0));
  OK(cudaDeviceSynchronize());
  EXPECT(host[0], 43);
  cudaGraphExecUpdateResultInfo result;
  EXPECT(cudaGraphExecUpdate(executable, parent, &result), cudaErrorGraphExecUpdateFailure);
  EXPECT(result.result, cudaGraphExecUpdateErrorTopologyChanged);
  OK(cudaGraphExecUpdate(executable, nodes.graph, &result));
  OK(cudaGraphDestroyNode(node));
  OK(cudaGraphGetNodes(parent, nullptr, &count));
  EXPECT(count, 0);
  OK(cudaGraphExecDestroy(nested));
  OK(cudaGraphDestroy(parent));
  OK(cudaGraphExecDestroy(executable));
}

static void keep_objects(cudaGraph_t graph) {
  int destroyed = 0;
  cudaUserObject_t object;
  cudaGraphExec_t executable;
  OK(cudaUserObjectCreate(&object, &destroyed, count_call, 1, cudaUserObjectNoDestructorSync));
  OK(cudaGraphRetainUserObject(graph, object, 1, cudaGraphUserObjectMove));
  OK(cudaGraphInstantiate(&executable, graph, 0));
  OK(cudaGraphDestroy(graph));
  EXPECT(destroyed, 0);
  OK(cudaGraphExecDestroy(executable));
  EXPECT(destroyed, 1);
}

// Each call ends the capture of a stream with the code that it returns.
static void end_captures(int *device) {
  cudaStream_t blocking, other;
  cudaGraph_t graph;
  void *memory = nullptr;
  OK(cudaStreamCreate(&blocking));
  OK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
  cudaGetLastError();
  for (int way = 0; way < 6; way++) {
    cudaStream_t stream = way < 4 ? blocking : other;
    cudaStreamCaptureMode mode = way == 5 ? cudaStreamCaptureModeRelaxed : cudaStreamCaptureModeGlobal;
    OK(cudaStreamBeginCapture(stream, mode));
    fill<<<1, 32, 0, stream>>>(device, 1);
    OK(cudaGetLastError());
    if (way == 0) EXPECT(cudaStreamSynchronize(stream), cudaErrorStreamCaptureUnsupported);
    if (way == 1) EXPECT(cudaDeviceSynchronize(), cudaErrorStreamCaptureUnsupported);
    if (way == 2) EXPECT(cudaMalloc(&memory, 64), cudaErrorStreamCaptureUnsupported);
    if (way >= 3) {
      fill<<<1, 32>>>(device, 1);
      EXPECT(cudaGetLastError(), way == 3 ? cudaErrorStreamCaptureImplicit : cudaSuccess);
    }
    if (way == 5) OK(cudaMalloc(&memory, 64));
    cudaStreamCaptureStatus status;
    OK(cudaStreamIsCapturing(stream, &status));
    EXPECT(status, way < 4 ? cudaStreamCaptureStatusInvalidated : cudaStreamCaptureStatusActive);
    EXPECT(cudaStreamEndCapture(stream, &graph), way < 4 ? cudaErrorStreamCaptureInvalidated : cudaSuccess);
    cudaGetLastError();
  }
}

int main(int, char **arguments) {
  int *device, *host, calls = 0;
  OK(cudaMalloc(&device, 128));
  OK(cudaMallocHost(&host, 128));
  Nodes nodes = build(device, host, &calls);
  describe(nodes, device, host, &calls);
  change(nodes, host, &calls);
  OK(cudaGraphDebugDotPrint(nodes.graph, arguments[1], cudaGraphDebugDotFlagsVerbose));
  keep_objects(nodes.graph);
  end_captures(device);
  printf(failed ? "failed\n" : "passed\n");
  return failed;
}
