// Streams and captures of threads that have ended (--default-stream per-thread).
#include <cstdio>
#include <cuda.h>
#include <thread>
#define CHECK(call, code) do { int found_ = (int)(call); if (found_ != (code)) \
    printf("line %d: %d\n", __LINE__, found_), failed = 1; } while (0)
static int failed;
__global__ void add(int *x) { atomicAdd(x, 1); }

// Its destructor runs with those of the thread.
struct Last {
  int *x = nullptr;
  ~Last() { if (x) add<<<1, 1>>>(x), cudaStreamSynchronize(cudaStreamPerThread); }
};
static thread_local Last last;

int main() {
  int *x, value = -1;
  cudaStream_t stream, kept;
  cudaGraph_t graph;
  CHECK(cudaMalloc(&x, 4), 0);
  CHECK(cudaMemset(x, 0, 4), 0);
  CHECK(cudaDeviceSynchronize(), 0);
  // The stream of a thread ends with it, after its operations.
  CUdeviceptr flag;
  CHECK(cuMemAlloc(&flag, 4), 0);
  CHECK(cudaMemset((void *)flag, 0, 4), 0);
  CHECK(cudaDeviceSynchronize(), 0);
  for (int i = 0; i < 3; i++) {
    unsigned long long handle = 0;
    std::thread([&] {
      add<<<1, 1>>>(x);
      CHECK(cudaStreamGetId(cudaStreamPerThread, &handle), 0);
      if (i == 2) CHECK(cuStreamWaitValue32((CUstream)handle, flag, 1, CU_STREAM_WAIT_VALUE_EQ), 0);
      add<<<1, 1>>>(x);
    }).join();
    CHECK(cudaStreamQuery((cudaStream_t)handle), i == 2 ? cudaErrorNotReady : cudaErrorInvalidResourceHandle);
    kept = (cudaStream_t)handle;
  }
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), 0);
  CHECK(cuStreamWriteValue32(stream, flag, 1, 0), 0);
  CHECK(cudaDeviceSynchronize(), 0);
  CHECK(cudaStreamQuery(kept), cudaErrorInvalidResourceHandle);
  CHECK(cudaMemcpy(&value, x, 4, cudaMemcpyDeviceToHost), 0);
  CHECK(value, 6);
  std::thread([&] { last.x = x, add<<<1, 1>>>(x); }).join();
  CHECK(cudaDeviceSynchronize(), 0);
  CHECK(cudaMemcpy(&value, x, 4, cudaMemcpyDeviceToHost), 0);
  CHECK(value, 8);
  // Another thread has not begun the capture, though the system may identify it as one that has ended.
  std::thread([&] { CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), 0); }).join();
  std::thread([&] {
    void *memory;
    CHECK(cudaMalloc(&memory, 4), 0);
    CHECK(cudaStreamEndCapture(stream, &graph), cudaErrorStreamCaptureWrongThread);
  }).join();
  puts(failed ? "failed" : "passed");
  return failed;
}
