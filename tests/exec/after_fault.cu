// Calls after a fault of a kernel: they return it, also where the device is not asked, until a reset.
#include <cstdio>
#include <cuda.h>
#define CHECK(call, code) do { int found_ = (int)(call); if (found_ != (code)) \
    printf("line %d: %d\n", __LINE__, found_), failed = 1; } while (0)
#define FAULT(call) CHECK(call, cudaErrorIllegalAddress)
static int failed;
__global__ void add(int *x, int by) { x[threadIdx.x] += by; }
__global__ void late(int *x) { x[threadIdx.x] = 3; }
__global__ void fault(int *x) { x[1 << 20] = 1; }
static void nothing(void *) {}

int main() {
  int *x, value = 0, *host;
  cudaStream_t stream;
  cudaEvent_t event;
  cudaGraph_t graph, other;
  cudaGraphNode_t node;
  cudaUserObject_t object;
  CHECK(cudaMalloc(&x, 128), 0);
  CHECK(cudaMallocHost(&host, 128), 0);
  CHECK(cudaStreamCreate(&stream), 0);
  CHECK(cudaEventCreate(&event), 0);
  CHECK(cudaGraphCreate(&graph, 0), 0);
  CHECK(cudaGraphAddEmptyNode(&node, graph, nullptr, 0), 0);
  fault<<<1, 1>>>(x);
  FAULT(cudaDeviceSynchronize());
  // Calls that are answered without the device.
  FAULT(cudaGraphCreate(&other, 0));
  FAULT(cudaGraphClone(&other, graph));
  FAULT(cudaGraphAddEmptyNode(&node, graph, nullptr, 0));
  size_t count = 0;
  FAULT(cudaGraphGetNodes(graph, nullptr, &count));
  cudaGraphNodeType type;
  FAULT(cudaGraphNodeGetType(node, &type));
  cudaGraphExec_t executable;
  FAULT(cudaGraphInstantiate(&executable, graph, 0));
  FAULT(cudaUserObjectCreate(&object, nullptr, nothing, 1, cudaUserObjectNoDestructorSync));
  FAULT(cudaGraphDestroy(graph));
  cudaStreamCaptureStatus status;
  FAULT(cudaStreamIsCapturing(stream, &status));
  FAULT(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  size_t limit = 0;
  FAULT(cudaDeviceGetLimit(&limit, cudaLimitStackSize));
  int least, greatest;
  FAULT(cudaDeviceGetStreamPriorityRange(&least, &greatest));
  cudaFuncCache config;
  FAULT(cudaDeviceGetCacheConfig(&config));
  unsigned long long bytes;
  FAULT(cudaDeviceGetGraphMemAttribute(0, cudaGraphMemAttrUsedMemCurrent, &bytes));
  unsigned flags;
  FAULT(cudaHostGetFlags(&flags, host));
  void *address;
  FAULT(cudaHostGetDevicePointer(&address, host, 0));
  FAULT(cudaFree(nullptr));
  FAULT(cudaMemcpy(x, x, 0, cudaMemcpyDefault));
  // Calls that end something.
  FAULT(cudaEventDestroy(event));
  FAULT(cudaStreamDestroy(stream));
  FAULT(cudaFreeHost(host));
  // The driver's.
  CUgraph driver_graph;
  FAULT(cuGraphCreate(&driver_graph, 0));
  CUevent driver_event;
  FAULT(cuEventCreate(&driver_event, 0));
  FAULT(cuCtxGetLimit(&limit, CU_LIMIT_STACK_SIZE));
  FAULT(cuCtxGetStreamPriorityRange(&least, &greatest));
  FAULT(cuEventDestroy(event));
  CUcontext context;
  FAULT(cuStreamGetCtx(nullptr, &context));
  FAULT(cuPointerGetAttribute(&context, CU_POINTER_ATTRIBUTE_CONTEXT, (CUdeviceptr)host));
  // Calls without a context.
  int number = -1, version = 0;
  cudaDeviceProp properties;
  CHECK(cudaGetDeviceCount(&number), 0);
  CHECK(cudaGetDevice(&number), 0);
  CHECK(cudaGetDeviceProperties(&properties, 0), 0);
  CHECK(cudaDeviceGetAttribute(&number, cudaDevAttrWarpSize, 0), 0);
  CHECK(cudaRuntimeGetVersion(&version), 0);
  CHECK(cuCtxGetCurrent(&context), 0);
  CHECK(cuDriverGetVersion(&version), 0);
  // A kernel whose first use comes after the fault.
  late<<<1, 32>>>(x);
  FAULT(cudaGetLastError());
  FAULT(cudaPeekAtLastError());
  cudaFuncAttributes attributes;
  FAULT(cudaFuncGetAttributes(&attributes, late));
  CHECK(cudaDeviceReset(), 0);
  cudaGetLastError();
  CHECK(cudaGraphCreate(&graph, 0), 0);
  CHECK(cudaMalloc(&x, 128), 0);
  late<<<1, 32>>>(x);
  add<<<1, 32>>>(x, 4);
  CHECK(cudaGetLastError(), 0);
  CHECK(cudaMemcpy(&value, x, 4, cudaMemcpyDeviceToHost), 0);
  CHECK(value, 7);
  puts(failed ? "failed" : "passed");
  return failed;
}
