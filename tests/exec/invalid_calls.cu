// Arguments that CUDA's documentation refuses, and captures that a call ends.
#include <cstdio>
#include <cuda.h>
#include <cuda_runtime.h>

static int failed = 0;
#define EXPECT(expression, wanted) do { \
  long long got = (long long)(expression); \
  if (got != (long long)(wanted)) { failed = 1; printf("line %d: %s is %lld\n", __LINE__, #expression, got); } \
} while (0)
#define OK(call) EXPECT(call, cudaSuccess)

__device__ int variable[16];
__global__ void add(int *word, int value) { *word += value; }

static int called = 0;
static void CUDART_CB count(void *) { called++; }

static void null_functions(cudaStream_t stream) {
  cudaGraph_t graph;
  cudaGraphNode_t node;
  cudaHostNodeParams host = {nullptr, nullptr};
  EXPECT(cudaLaunchHostFunc(stream, nullptr, nullptr), cudaErrorInvalidValue);
  EXPECT(cudaStreamAddCallback(stream, nullptr, nullptr, 0), cudaErrorInvalidValue);
  EXPECT(cuLaunchHostFunc(stream, nullptr, nullptr), CUDA_ERROR_INVALID_VALUE);
  OK(cudaGraphCreate(&graph, 0));
  EXPECT(cudaGraphAddHostNode(&node, graph, nullptr, 0, &host), cudaErrorInvalidValue);
  host.fn = count;
  OK(cudaGraphAddHostNode(&node, graph, nullptr, 0, &host));
  host.fn = nullptr;
  EXPECT(cudaGraphHostNodeSetParams(node, &host), cudaErrorInvalidValue);
  OK(cudaGraphDestroy(graph));
}

static void flags(cudaStream_t stream, int *memory) {
  cudaStream_t other;
  cudaEvent_t event;
  int value;
  size_t limit;
  void *host, *device;
  EXPECT(cudaStreamCreateWithFlags(&other, 77), cudaErrorInvalidValue);
  EXPECT(cudaEventCreateWithFlags(&event, 99), cudaErrorInvalidValue);
  EXPECT(cudaEventCreateWithFlags(&event, cudaEventInterprocess), cudaErrorInvalidValue);
  OK(cudaEventCreate(&event));
  EXPECT(cudaStreamWaitEvent(stream, event, 5), cudaErrorInvalidValue);
  EXPECT(cudaEventRecordWithFlags(event, stream, 7), cudaErrorInvalidValue);
  EXPECT(cudaDeviceSetLimit((cudaLimit)77, 1), cudaErrorUnsupportedLimit);
  EXPECT(cudaDeviceGetLimit(&limit, (cudaLimit)77), cudaErrorUnsupportedLimit);
  EXPECT(cudaDeviceGetAttribute(&value, (cudaDeviceAttr)9999, 0), cudaErrorInvalidValue);
  EXPECT(cudaFuncSetAttribute(add, (cudaFuncAttribute)99, 1), cudaErrorInvalidValue);
  EXPECT(cudaFuncSetAttribute(add, cudaFuncAttributePreferredSharedMemoryCarveout, 101), cudaErrorInvalidValue);
  OK(cudaFuncSetAttribute(add, cudaFuncAttributePreferredSharedMemoryCarveout, -1));
  OK(cudaMallocHost(&host, 64));
  EXPECT(cudaHostGetDevicePointer(&device, host, 1), cudaErrorInvalidValue);
  EXPECT(cudaMemcpyToSymbol(variable, host, 4, 0, cudaMemcpyDeviceToHost), cudaErrorInvalidMemcpyDirection);
  EXPECT(cudaMemcpyFromSymbol(host, variable, 4, 0, cudaMemcpyHostToDevice), cudaErrorInvalidMemcpyDirection);
  EXPECT(cudaMemset2D(memory, 4, 0, 16, 4), cudaErrorInvalidValue);
  EXPECT(cudaMemset(host, 0, 65), cudaErrorInvalidValue);
  EXPECT(cudaMemcpyPeer(memory, 1, memory, 0, 16), cudaErrorInvalidDevice);
  unsigned long long null_number, legacy_number;
  OK(cudaStreamGetId(nullptr, &null_number));
  OK(cudaStreamGetId(cudaStreamLegacy, &legacy_number));
  EXPECT(null_number, legacy_number);
}

static void nodes(int *memory) {
  cudaGraph_t graph;
  cudaGraphExec_t executable;
  cudaGraphNode_t node;
  int one = 1;
  void *arguments[] = {&memory, &one};
  cudaKernelNodeParams kernel = {(void *)add, dim3(0), dim3(1), 0, arguments};
  cudaMemsetParams fill = {memory, 0, 0, 3, 4, 1};
  OK(cudaGraphCreate(&graph, 0));
  EXPECT(cudaGraphAddKernelNode(&node, graph, nullptr, 0, &kernel), cudaErrorInvalidConfiguration);
  EXPECT(cudaGraphAddMemsetNode(&node, graph, nullptr, 0, &fill), cudaErrorInvalidValue);
  kernel.gridDim = dim3(1);
  OK(cudaGraphAddKernelNode(&node, graph, nullptr, 0, &kernel));
  kernel.blockDim = dim3(2000);
  EXPECT(cudaGraphKernelNodeSetParams(node, &kernel), cudaErrorInvalidConfiguration);
  EXPECT(cudaGraphInstantiate(&executable, graph, 0xff00), cudaErrorInvalidValue);
  OK(cudaGraphInstantiate(&executable, graph, 0));
  OK(cudaGraphLaunch(executable, nullptr));
  OK(cudaDeviceSynchronize());
}

static void captures(cudaStream_t stream, int *memory) {
  cudaGraph_t graph;
  cudaGraphExec_t executable;
  cudaEvent_t event, start;
  size_t count = 9;
  OK(cudaEventCreate(&event));
  OK(cudaEventCreate(&start));
  // A launch that the device refuses fails at once, and the capture goes on.
  OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  add<<<1, 2000, 0, stream>>>(memory, 1);
  EXPECT(cudaGetLastError(), cudaErrorInvalidConfiguration);
  add<<<1, 1, 0, stream>>>(memory, 1);
  OK(cudaGetLastError());
  OK(cudaStreamEndCapture(stream, &graph));
  OK(cudaGraphGetNodes(graph, nullptr, &count));
  EXPECT(count, 1);
  // An event of a capture has no state, and a capture that failed has no graph.
  OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  OK(cudaEventRecord(event, stream));
  EXPECT(cudaEventQuery(event), cudaErrorCapturedEvent);
  EXPECT(cudaStreamEndCapture(stream, &graph), cudaErrorStreamCaptureInvalidated);
  EXPECT(graph == nullptr, true);
  OK(cudaEventRecord(event, stream));
  OK(cudaEventSynchronize(event));
  // External events are nodes, which each launch of the graph records.
  OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  OK(cudaEventRecordWithFlags(start, stream, cudaEventRecordExternal));
  add<<<1, 1, 0, stream>>>(memory, 1);
  OK(cudaEventRecordWithFlags(event, stream, cudaEventRecordExternal));
  OK(cudaStreamEndCapture(stream, &graph));
  OK(cudaGraphInstantiate(&executable, graph, 0));
  OK(cudaGraphLaunch(executable, stream));
  OK(cudaStreamSynchronize(stream));
  float ms = 0;
  OK(cudaEventElapsedTime(&ms, start, event));
  EXPECT(ms > 0, true);
}

// A capture whose stream is destroyed, or whose device is reset, is gone: other calls are permitted again.
static void abandoned_captures() {
  cudaStream_t stream;
  int *memory;
  OK(cudaStreamCreate(&stream));
  OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  OK(cudaStreamDestroy(stream));
  OK(cudaMalloc(&memory, 64));
  OK(cudaDeviceSynchronize());
  OK(cudaStreamCreate(&stream));
  OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  OK(cudaDeviceReset());
  OK(cudaMalloc(&memory, 64));
}

int main() {
  cudaStream_t stream;
  int *memory;
  OK(cudaStreamCreate(&stream));
  OK(cudaMalloc(&memory, 64));
  OK(cudaMemset(memory, 0, 64));
  null_functions(stream);
  flags(stream, memory);
  cudaGetLastError();
  nodes(memory);
  cudaGetLastError();
  captures(stream, memory);
  abandoned_captures();
  EXPECT(called, 0);
  printf(failed ? "failed\n" : "passed\n");
  return failed;
}
