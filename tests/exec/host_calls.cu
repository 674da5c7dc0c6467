// Calls of the host with the results that CUDA's documentation states.
#include <cstdio>
#include <cuda.h>
#include <cuda_runtime.h>

static int failed = 0;
#define EXPECT(expression, wanted) do { \
  long long got = (long long)(expression); \
  if (got != (long long)(wanted)) { failed = 1; printf("line %d: %s is %lld\n", __LINE__, #expression, got); } \
} while (0)
#define OK(call) EXPECT(call, cudaSuccess)

__managed__ int managed_word = 7;
__global__ void increment_managed() { managed_word++; }
__global__ void allocate(int *blocks) {
  *blocks = 0;
  for (int i = 0; i < 20; i++) *blocks += malloc(1 << 20) != nullptr;
}
__global__ void speak() { printf("unheard\n"); }

static void advise() {
  int *managed, *device, mostly = -1, preferred = -9;
  OK(cudaMallocManaged(&managed, 4096));
  OK(cudaMalloc(&device, 4096));
  cudaMemLocation place = {cudaMemLocationTypeDevice, 0};
  OK(cudaMemRangeGetAttribute(&preferred, 4, cudaMemRangeAttributePreferredLocation, managed, 4096));
  EXPECT(preferred, cudaInvalidDeviceId);
  OK(cudaMemAdvise(managed, 4096, cudaMemAdviseSetReadMostly, place));
  OK(cudaMemAdvise(managed, 4096, cudaMemAdviseSetPreferredLocation, place));
  OK(cudaMemPrefetchAsync(managed, 4096, place, 0));
  OK(cudaMemRangeGetAttribute(&mostly, 4, cudaMemRangeAttributeReadMostly, managed, 4096));
  OK(cudaMemRangeGetAttribute(&preferred, 4, cudaMemRangeAttributePreferredLocation, managed, 4096));
  EXPECT(mostly == 1 && preferred == 0, true);
  EXPECT(cudaMemPrefetchAsync(device, 4096, place, 0), cudaErrorInvalidValue);
  EXPECT(cudaMemAdvise(managed, 8192, cudaMemAdviseSetReadMostly, place), cudaErrorInvalidValue);
}

static void copy_too_much() {
  // The bytes after the array are not the program's: the size is refused before they are read.
  static int few[4];
  int *device;
  OK(cudaMalloc(&device, 4096));
  EXPECT(cudaMemcpy(device, few, 1 << 30, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  OK(cudaMemcpy(device, few, 16, cudaMemcpyHostToDevice));
}

static void contexts_and_devices() {
  int number = -1, value, *memory;
  char bus[32];
  OK(cudaDeviceGetPCIBusId(bus, 32, 0));
  OK(cudaDeviceGetByPCIBusId(&number, bus));
  EXPECT(number, 0);
  EXPECT(cudaDeviceEnablePeerAccess(0, 0), cudaErrorInvalidDevice);
  EXPECT(cudaDeviceGetP2PAttribute(&value, cudaDevP2PAttrAccessSupported, 0, 0), cudaErrorInvalidDevice);
  EXPECT(cudaDeviceGetP2PAttribute(&value, cudaDevP2PAttrAccessSupported, 0, 1), cudaErrorInvalidDevice);
  cudaGetLastError();
  CUcontext context;
  CUdeviceptr pointer;
  OK(cuCtxGetCurrent(&context));
  EXPECT(context != nullptr, true);
  OK(cuCtxSetCurrent(nullptr));
  OK(cuCtxGetCurrent(&context));
  EXPECT(context == nullptr, true);
  EXPECT(cuMemAlloc(&pointer, 16), CUDA_ERROR_INVALID_CONTEXT);
  OK(cudaMalloc(&memory, 16));
  OK(cuMemAlloc(&pointer, 16));
}

// The contexts of memory and streams end with these: a reset hands out their addresses and handles again.
static void contexts_of_memory() {
  CUcontext before, created, found;
  CUdeviceptr pointer, again;
  CUstream stream;
  cudaStream_t stream_again;
  OK(cudaDeviceReset());
  OK(cuCtxGetCurrent(&before));
  OK(cuCtxCreate(&created, nullptr, 0, 0));
  OK(cuMemAlloc(&pointer, 1 << 20));
  OK(cuStreamCreate(&stream, 0));
  OK(cuPointerGetAttribute(&found, CU_POINTER_ATTRIBUTE_CONTEXT, pointer));
  EXPECT(found == created, true);
  OK(cuStreamGetCtx(stream, &found));
  EXPECT(found == created, true);
  OK(cuMemFree(pointer));
  OK(cuCtxSetCurrent(before));
  OK(cudaDeviceReset());
  OK(cudaMalloc((void **)&again, 1 << 20));
  OK(cudaStreamCreate(&stream_again));
  EXPECT(again == pointer && stream_again == stream, true);
  OK(cuPointerGetAttribute(&found, CU_POINTER_ATTRIBUTE_CONTEXT, again));
  EXPECT(found == before, true);
  OK(cuStreamGetCtx(stream_again, &found));
  EXPECT(found == before, true);
  OK(cudaDeviceReset());
  OK(cuCtxDestroy(created));
}

static void flags_and_times() {
  cudaEvent_t timed, untimed;
  unsigned flags;
  float ms;
  void *host;
  OK(cudaHostAlloc(&host, 64, cudaHostAllocWriteCombined));
  OK(cudaHostGetFlags(&flags, host));
  EXPECT(flags & cudaHostAllocWriteCombined, cudaHostAllocWriteCombined);
  OK(cudaEventCreate(&timed));
  OK(cudaEventCreateWithFlags(&untimed, cudaEventDisableTiming));
  OK(cudaEventRecord(timed));
  OK(cudaEventRecord(untimed));
  EXPECT(cudaEventElapsedTime(&ms, timed, untimed), cudaErrorInvalidResourceHandle);
  cudaDeviceProp properties;
  OK(cudaGetDeviceProperties(&properties, 0));
  EXPECT(properties.memoryBusWidth % 32, 0);
}

static int called = 0;
static void CUDART_CB count(cudaStream_t, cudaError_t status, void *argument) {
  EXPECT(status, cudaSuccess);
  called += *(int *)argument;
}

static struct {
  cudaEvent_t event;
  cudaStream_t stream, other;
  int found[5];
} asked;
static void CUDART_CB ask(void *) {
  const int found[] = {cudaEventQuery(asked.event), cudaStreamQuery(asked.stream), cudaStreamQuery(asked.other),
                       cudaEventSynchronize(asked.event), cudaEventQuery((cudaEvent_t)0x77770)};
  for (int i = 0; i < 5; i++) asked.found[i] = found[i];
}

static void callbacks() {
  static int step = 1;
  cudaStream_t stream, other;
  cudaGraph_t graph;
  CUdeviceptr word;
  OK(cudaStreamCreate(&stream));
  OK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
  OK(cudaStreamAddCallback(stream, count, &step, 0));
  OK(cudaStreamSynchronize(stream));
  EXPECT(called, 1);
  // A callback waits for the operations before it.
  OK(cuMemAlloc(&word, 4));
  OK(cuMemsetD32(word, 0, 1));
  OK(cuStreamWaitValue32(stream, word, 1, CU_STREAM_WAIT_VALUE_EQ));
  OK(cuStreamAddCallback(stream, (CUstreamCallback)count, &step, 0));
  EXPECT(called, 1);
  OK(cuStreamWriteValue32(other, word, 1, 0));
  OK(cuStreamSynchronize(stream));
  EXPECT(called, 2);
  // One may ask whether work is complete: its own stream is not, and what was recorded before it is.
  OK(cudaEventCreate(&asked.event));
  OK(cudaEventRecord(asked.event, stream));
  asked.stream = stream;
  asked.other = other;
  OK(cudaLaunchHostFunc(stream, ask, nullptr));
  OK(cudaStreamSynchronize(stream));
  EXPECT(asked.found[0], cudaSuccess);
  EXPECT(asked.found[1], cudaErrorNotReady);
  EXPECT(asked.found[2], cudaSuccess);
  EXPECT(asked.found[3], cudaErrorNotPermitted);
  EXPECT(asked.found[4], cudaErrorInvalidResourceHandle);
  cudaGetLastError();
  // No graph holds one.
  OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  EXPECT(cudaStreamAddCallback(stream, count, &step, 0), cudaErrorStreamCaptureUnsupported);
  EXPECT(cudaStreamEndCapture(stream, &graph), cudaErrorStreamCaptureInvalidated);
  cudaGetLastError();
  EXPECT(called, 2);
  OK(cudaStreamDestroy(stream));
  OK(cudaStreamDestroy(other));
}

static void fill_managed() {
  unsigned *managed;
  OK(cudaMallocManaged(&managed, 64));
  OK(cudaMemset(managed, 0x5a, 64));
  OK(cudaDeviceSynchronize());
  EXPECT(managed[15], 0x5a5a5a5a);
}

static void reset() {
  size_t bytes = 0;
  OK(cudaDeviceSetLimit(cudaLimitMallocHeapSize, 32 << 20));
  OK(cudaDeviceReset());
  OK(cudaDeviceGetLimit(&bytes, cudaLimitMallocHeapSize));
  EXPECT(bytes, 8 << 20);
}

static void variables_after_reset() {
  increment_managed<<<1, 1>>>();
  OK(cudaDeviceSynchronize());
  EXPECT(managed_word, 8);
  OK(cudaDeviceReset());
  increment_managed<<<1, 1>>>();
  OK(cudaDeviceSynchronize());
  EXPECT(managed_word, 8);
}

static void heap() {
  int *blocks, found = 0;
  OK(cudaDeviceReset());
  OK(cudaMalloc(&blocks, 4));
  OK(cudaDeviceSetLimit(cudaLimitMallocHeapSize, 64 << 20));
  allocate<<<1, 1>>>(blocks);
  OK(cudaMemcpy(&found, blocks, 4, cudaMemcpyDeviceToHost));
  EXPECT(found, 20);
  // A kernel has used the heap: its size stays.
  EXPECT(cudaDeviceSetLimit(cudaLimitMallocHeapSize, 128 << 20), cudaErrorInvalidValue);
  OK(cudaDeviceReset());
}

int main() {
  callbacks();
  fill_managed();
  advise();
  copy_too_much();
  contexts_and_devices();
  contexts_of_memory();
  flags_and_times();
  reset();
  variables_after_reset();
  heap();
  printf(failed ? "failed\n" : "passed\n");
  fflush(stdout);
  speak<<<1, 1>>>();
  return failed;
}
