// Streams, captures, graphs and errors that a program uses through both interfaces.
#include <cstdio>
#include <cuda.h>

#define CHECK(call, code) do { int found_ = (int)(call); if (found_ != (code)) \
    printf("line %d: %d\n", __LINE__, found_), failed = 1; } while (0)

static int failed;

__global__ void add(int *x, int by) { x[threadIdx.x] += by; }
__global__ void say(int n) { printf("kernel %d\n", n); }
__global__ void fault(int *x) { x[1 << 20] = 1; }

static CUfunction of(const void *kernel) {
    cudaFunction_t function = nullptr;
    CHECK(cudaGetFuncBySymbol(&function, kernel), 0);
    return function;
}

static void drive(const void *kernel, void **arguments, unsigned threads, cudaStream_t stream) {
    CHECK(cuLaunchKernel(of(kernel), 1, 1, 1, threads, 1, 1, 0, stream, arguments, nullptr), 0);
}

static int first(const int *x) {
    int value = -1;
    CHECK(cudaMemcpy(&value, x, sizeof value, cudaMemcpyDeviceToHost), 0);
    return value;
}

// A stream that the runtime captures takes the driver's operations, and the other way round.
static void captures(int *x, cudaStream_t stream) {
    int by = 3;
    void *arguments[] = {&x, &by};
    cudaGraph_t graph;
    cudaGraphExec_t executable;
    CUstreamCaptureStatus status;
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), 0);
    CHECK(cuStreamIsCapturing(stream, &status), 0);
    CHECK(status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
    drive((const void *)add, arguments, 32, stream);
    CHECK(cuMemsetD32Async((CUdeviceptr)(x + 1), 5, 1, stream), 0);
    add<<<1, 32, 0, stream>>>(x, 1);
    CHECK(cuStreamEndCapture(stream, &graph), 0);
    CHECK(first(x), 0);
    CHECK(cudaGraphInstantiate(&executable, graph, 0), 0);
    for (int i = 0; i < 2; i++) CHECK(cuGraphLaunch(executable, stream), 0);
    CHECK(cudaStreamSynchronize(stream), 0);
    CHECK(first(x), 8);
    CHECK(first(x + 1), 6);
    CHECK(cuGraphExecDestroy(executable), 0);
    CHECK(cudaGraphDestroy(graph), 0);
    // The mode of the thread is one for both.
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    CHECK(cuThreadExchangeStreamCaptureMode(&mode), 0);
    cudaStreamCaptureMode back = cudaStreamCaptureModeGlobal;
    CHECK(cudaThreadExchangeStreamCaptureMode(&back), 0);
    CHECK(back, cudaStreamCaptureModeRelaxed);
}

// A graph of the driver takes nodes of the runtime.
static void graphs(int *x, cudaStream_t stream) {
    int by = 10;
    void *arguments[] = {&x, &by};
    CUgraph graph;
    cudaGraphNode_t node, other;
    cudaKernelNodeParams kernel = {(void *)add, 1, 32, 0, arguments, nullptr};
    CHECK(cuGraphCreate(&graph, 0), 0);
    CHECK(cudaGraphAddKernelNode(&node, graph, nullptr, 0, &kernel), 0);
    CHECK(cuGraphAddEmptyNode(&other, graph, &node, 1), 0);
    CUgraphExec executable;
    CHECK(cuGraphInstantiate(&executable, graph, 0), 0);
    int before = first(x);
    CHECK(cudaGraphLaunch(executable, stream), 0);
    CHECK(cudaStreamSynchronize(stream), 0);
    CHECK(first(x), before + 10);
    CHECK(cudaGraphExecDestroy(executable), 0);
    CHECK(cudaGraphDestroy(graph), 0);
}

// A stream that waits for a value keeps the operations of both.
static void values(int *x, cudaStream_t stream) {
    int by = 1, *flag, before = first(x);
    void *arguments[] = {&x, &by};
    CHECK(cudaMalloc(&flag, 64), 0);
    CHECK(cudaMemset(flag, 0, 64), 0);
    CHECK(cuStreamWaitValue32(stream, (CUdeviceptr)flag, 1, CU_STREAM_WAIT_VALUE_EQ), 0);
    add<<<1, 32, 0, stream>>>(x, 100);
    drive((const void *)add, arguments, 32, stream);
    CHECK(cudaStreamQuery(stream), cudaErrorNotReady);
    CHECK(first(x), before);
    cudaStream_t other;
    CHECK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking), 0);
    CHECK(cuStreamWriteValue32(other, (CUdeviceptr)flag, 1, 0), 0);
    CHECK(cudaStreamSynchronize(stream), 0);
    CHECK(first(x), before + 101);
    CHECK(cudaStreamDestroy(other), 0);
}

int main() {
    int *x;
    cudaStream_t stream;
    CHECK(cuInit(0), 0);
    CHECK(cudaMalloc(&x, 128), 0);
    CHECK(cudaMemset(x, 0, 128), 0);
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), 0);
    captures(x, stream);
    graphs(x, stream);
    values(x, stream);
    // What a kernel prints appears where the program waits for it.
    int n = 7;
    void *number[] = {&n};
    drive((const void *)say, number, 1, stream);
    CHECK(cudaDeviceSynchronize(), 0);
    // Page-locked memory of one interface is that of the other.
    void *pinned;
    unsigned flags = 9;
    CHECK(cuMemHostAlloc(&pinned, 4096, CU_MEMHOSTALLOC_DEVICEMAP), 0);
    CHECK(cudaHostGetFlags(&flags, pinned), 0);
    CHECK(flags, cudaHostAllocMapped);
    CHECK(cudaFreeHost(pinned), 0);
    fault<<<1, 1>>>(x);
    CHECK(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
    CHECK(cudaGetLastError(), cudaErrorIllegalAddress);
    puts(failed ? "failed" : "passed");
    return failed;
}
