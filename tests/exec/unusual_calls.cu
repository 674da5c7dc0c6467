// Calls that CUDA refuses or orders, one after the other.
#include <cstdio>
#include <cuda.h>
#define CHECK(call, code) do { int found_ = (int)(call); if (found_ != (code)) \
    printf("line %d: %d\n", __LINE__, found_), failed = 1; } while (0)
static int failed;
__global__ void add(int *x, int by) { x[threadIdx.x] += by; }
__global__ void fault(int *x) { x[1 << 20] = 1; }
static int called = -1;
static void call_cuda(void *) { void *p; called = (int)cudaMalloc(&p, 4); }
static cudaStream_t asked;
static void query(void *) { called = (int)cudaStreamQuery(asked); }
static int first(const int *x) { int v = -1; CHECK(cudaMemcpy(&v, x, 4, cudaMemcpyDeviceToHost), 0); return v; }
int main() {
  int *x; cudaStream_t s, t;
  CHECK(cudaMalloc(&x, 128), 0); CHECK(cudaMemset(x, 0, 128), 0);
  CHECK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking), 0);
  CHECK(cudaStreamCreateWithFlags(&t, cudaStreamNonBlocking), 0);
  // A destroyed stream ends after the operations that wait.
  int *flag; CHECK(cudaMalloc(&flag, 64), 0); CHECK(cudaMemset(flag, 0, 64), 0);
  CHECK(cuStreamWaitValue32(s, (CUdeviceptr)flag, 1, 0), 0);
  add<<<1, 32, 0, s>>>(x, 5);
  CHECK(cudaStreamDestroy(s), 0);
  CHECK(first(x), 0);
  CHECK(cuStreamWriteValue32(t, (CUdeviceptr)flag, 1, 0), 0);
  CHECK(cudaDeviceSynchronize(), 0);
  CHECK(first(x), 5);
  CHECK(cudaStreamSynchronize(s), cudaErrorInvalidResourceHandle);
  cudaGetLastError();
  // Attributes of launches.
  cudaLaunchConfig_t c = {}; c.gridDim = 1; c.blockDim = 32; c.stream = t; c.numAttrs = 1;
  CHECK(cudaLaunchKernelEx(&c, add, x, 1), cudaErrorInvalidValue);
  cudaLaunchAttribute a[2] = {}; a[0].id = (cudaLaunchAttributeID)99; c.attrs = a;
  CHECK(cudaLaunchKernelEx(&c, add, x, 1), cudaErrorInvalidValue);
  cudaEvent_t e; CHECK(cudaEventCreateWithFlags(&e, cudaEventDisableTiming), 0);
  a[0].id = cudaLaunchAttributeProgrammaticEvent; a[0].val.programmaticEvent.event = e;
  CHECK(cudaLaunchKernelEx(&c, add, x, 1), 0);
  CHECK(cudaStreamWaitEvent(0, e, 0), 0);
  CHECK(first(x), 6);
  // Frees of the other kind.
  void *p, *h; CHECK(cudaMalloc(&p, 16), 0); CHECK(cudaMallocHost(&h, 16), 0);
  CHECK(cudaFreeAsync(h, t), cudaErrorInvalidValue);
  CHECK(cudaFreeAsync(p, t), 0); CHECK(cudaFreeAsync(p, t), cudaErrorInvalidValue);
  CHECK(cudaMalloc(&p, 16), 0);
  CHECK(cudaFreeHost(p), cudaErrorInvalidValue);
  CHECK(cudaFree(h), cudaErrorInvalidValue);
  CHECK(cudaFree(p), 0); CHECK(cudaFreeHost(h), 0);
  CHECK(cudaMallocAsync(&p, 16, t), 0); CHECK(cudaFree(p), 0);
  CHECK(cudaMallocAsync(&p, 16, t), 0); CHECK(cudaFreeAsync(p, t), 0);
  CHECK(cudaFreeAsync(p, t), cudaErrorInvalidValue);
  // Largest size of a pool.
  cudaMemPoolProps props = {}; props.allocType = cudaMemAllocationTypePinned; props.location.type = cudaMemLocationTypeDevice; props.maxSize = 4 << 20;
  cudaMemPool_t pool; CHECK(cudaMemPoolCreate(&pool, &props), 0);
  void *q; CHECK(cudaMallocFromPoolAsync(&p, 3 << 20, pool, t), 0);
  CHECK(cudaMallocFromPoolAsync(&q, 2 << 20, pool, t), cudaErrorMemoryAllocation);
  CHECK(cudaFreeAsync(p, t), 0);
  CHECK(cudaMallocFromPoolAsync(&q, 2 << 20, pool, t), 0);
  CHECK(cudaFreeAsync(q, t), 0);
  // Memory of a destroyed graph.
  size_t before, after, total; CHECK(cudaDeviceSynchronize(), 0); CHECK(cudaMemGetInfo(&before, &total), 0);
  for (int i = 0; i < 3; i++) {
    cudaGraph_t g; cudaGraphExec_t x2;
    CHECK(cudaStreamBeginCapture(t, cudaStreamCaptureModeGlobal), 0);
    CHECK(cudaMallocAsync(&p, 8 << 20, t), 0);
    add<<<1, 32, 0, t>>>((int *)p, 1 - 1);
    CHECK(cudaMemsetAsync(p, 0, 4, t), 0);
    CHECK(cudaFreeAsync(p, t), 0);
    CHECK(cudaStreamEndCapture(t, &g), 0);
    CHECK(cudaGraphInstantiate(&x2, g, 0), 0);
    CHECK(cudaGraphDestroy(g), 0);
    CHECK(cudaGraphExecDestroy(x2), 0);
  }
  // Memory of a node that cannot be added.
  cudaGraph_t g; CHECK(cudaGraphCreate(&g, 1), cudaErrorInvalidValue); CHECK(cudaGraphCreate(&g, 0), 0);
  cudaGraphNode_t n, m, twice[2]; CHECK(cudaGraphAddEmptyNode(&n, g, nullptr, 0), 0);
  twice[0] = twice[1] = n;
  cudaMemAllocNodeParams memory = {}; memory.bytesize = 8 << 20; memory.poolProps.allocType = cudaMemAllocationTypePinned; memory.poolProps.location.type = cudaMemLocationTypeDevice;
  CHECK(cudaGraphAddMemAllocNode(&m, g, twice, 2, &memory), cudaErrorInvalidValue);
  CHECK(cudaMemGetInfo(&after, &total), 0);
  CHECK(before == after, 1);
  // Frees of memory of a graph.
  cudaGraph_t left; cudaGraphExec_t exec; unsigned long long flags;
  CHECK(cudaStreamBeginCapture(t, cudaStreamCaptureModeGlobal), 0);
  CHECK(cudaMallocAsync(&p, 128, t), 0);
  CHECK(cudaStreamEndCapture(t, &left), 0);
  CHECK(cudaGraphInstantiate(&exec, left, cudaGraphInstantiateFlagAutoFreeOnLaunch | cudaGraphInstantiateFlagUpload), 0);
  CHECK(cudaGraphExecGetFlags(exec, &flags), 0); CHECK(flags, cudaGraphInstantiateFlagAutoFreeOnLaunch);
  CHECK(cudaFree(p), cudaErrorInvalidValue);
  CHECK(cudaGraphLaunch(exec, t), 0);
  CHECK(cudaFreeAsync(p, t), 0); CHECK(cudaFreeAsync(p, t), cudaErrorInvalidValue);
  // Graphs.
  CHECK(cudaGraphAddEmptyNode(&m, g, twice, 2), cudaErrorInvalidValue);
  CHECK(cudaGraphAddEmptyNode(&m, g, twice, 1), 0);
  cudaGetLastError();
  // Calls by functions of the host.
  CHECK(cudaLaunchHostFunc(t, call_cuda, nullptr), 0); CHECK(cudaStreamSynchronize(t), 0);
  CHECK(called, cudaErrorNotPermitted);
  // They take no operation that waits.
  CHECK(cudaMemset(x, 0, 128), 0); CHECK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking), 0);
  CHECK(cuStreamWaitValue32(s, (CUdeviceptr)flag, 2, 0), 0);
  asked = s; CHECK(cudaLaunchHostFunc(s, query, nullptr), 0);
  add<<<1, 32, 0, s>>>(x, 7);
  CHECK(cuStreamWriteValue32(t, (CUdeviceptr)flag, 2, 0), 0);
  CHECK(cudaStreamSynchronize(s), 0); CHECK(first(x), 7);
  cudaGetLastError();
  // A fault ends every later call.
  CHECK(cudaStreamBeginCapture(t, cudaStreamCaptureModeGlobal), 0);
  fault<<<1, 1, 0, t>>>(x);
  CHECK(cudaStreamEndCapture(t, &left), 0); CHECK(cudaGraphInstantiate(&exec, left, 0), 0);
  CHECK(cudaGraphLaunch(exec, t), 0); CHECK(cudaGetLastError(), 0);
  CHECK(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
  CHECK(cudaGraphLaunch(exec, t), cudaErrorIllegalAddress);
  CHECK(cudaMemGetInfo(&before, &total), cudaErrorIllegalAddress);
  CHECK(cudaEventRecord(e, t), cudaErrorIllegalAddress);
  CHECK(cudaStreamWaitEvent(t, e, 0), cudaErrorIllegalAddress);
  unsigned f; CHECK(cudaStreamGetFlags(t, &f), cudaErrorIllegalAddress);
  int blocks; CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, add, 32, 0), cudaErrorIllegalAddress);
  int count; CHECK(cudaGetDeviceCount(&count), 0);
  CHECK(cudaDeviceReset(), 0); CHECK(cudaMemGetInfo(&before, &total), 0);
  puts(failed ? "failed" : "passed");
  return failed;
}
