// What CUDA permits for graphs that allocate and free memory.
#include <cstdio>
#include <cuda.h>

#define CHECK(call, code) do { int found_ = (int)(call); if (found_ != (code)) \
    printf("line %d: %d\n", __LINE__, found_), failed = 1; cudaGetLastError(); } while (0)

static int failed;

static cudaGraphNode_t allocate(cudaGraph_t graph, void **memory) {
    cudaMemAllocNodeParams parameters = {};
    parameters.poolProps.allocType = cudaMemAllocationTypePinned;
    parameters.poolProps.location = {cudaMemLocationTypeDevice, 0};
    parameters.bytesize = 4096;
    cudaGraphNode_t node;
    CHECK(cudaGraphAddMemAllocNode(&node, graph, nullptr, 0, &parameters), 0);
    *memory = parameters.dptr;
    return node;
}

// A graph that allocates memory, fills it and, if so, frees it.
static cudaGraph_t filled(void **memory, int value, bool frees) {
    cudaGraph_t graph;
    cudaGraphNode_t fill, end;
    CHECK(cudaGraphCreate(&graph, 0), 0);
    cudaGraphNode_t begin = allocate(graph, memory);
    cudaMemsetParams parameters = {};
    parameters.dst = *memory, parameters.value = value, parameters.elementSize = 4, parameters.width = 1024, parameters.height = 1;
    CHECK(cudaGraphAddMemsetNode(&fill, graph, &begin, 1, &parameters), 0);
    if (frees) CHECK(cudaGraphAddMemFreeNode(&end, graph, &fill, 1, *memory), 0);
    return graph;
}

static int first(void *memory) {
    int value = -1;
    CHECK(cudaMemcpy(&value, memory, sizeof value, cudaMemcpyDeviceToHost), 0);
    return value;
}

// An update takes over the memory of the other graph, and the memory of both ends with the graphs.
static void update(cudaStream_t stream) {
    size_t before, after, total;
    cudaGraphExec_t executable;
    cudaGraphExecUpdateResultInfo updated;
    void *one, *other;
    CHECK(cudaMemGetInfo(&before, &total), 0);
    cudaGraph_t first_graph = filled(&one, 5, false), second = filled(&other, 6, false), third = filled(&one, 7, true);
    CHECK(cudaGraphInstantiate(&executable, first_graph, 0), 0);
    CHECK(cudaGraphExecUpdate(executable, third, &updated), cudaErrorGraphExecUpdateFailure);
    CHECK(cudaGraphExecUpdate(executable, second, &updated), 0);
    CHECK(cudaGraphLaunch(executable, stream), 0);
    CHECK(cudaStreamSynchronize(stream), 0);
    CHECK(first(other), 6);
    CHECK(cudaGraphLaunch(executable, stream), cudaErrorInvalidValue);
    CHECK(cudaFreeAsync(other, stream), 0);
    for (cudaGraph_t graph : {first_graph, second, third}) CHECK(cudaGraphDestroy(graph), 0);
    CHECK(cudaGraphExecDestroy(executable), 0);
    CHECK(cudaMemGetInfo(&after, &total), 0);
    CHECK(after == before, 1);
}

// A free in the order of a stream follows the launch that waits there.
static void waits(cudaStream_t stream) {
    size_t before, after, total;
    cudaGraphExec_t executable;
    cudaStream_t other;
    void *memory;
    CUdeviceptr flag;
    CHECK(cuMemAlloc(&flag, 64), 0);
    CHECK(cuMemsetD32(flag, 0, 1), 0);
    CHECK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking), 0);
    CHECK(cudaMemGetInfo(&before, &total), 0);
    cudaGraph_t graph = filled(&memory, 8, false);
    CHECK(cudaGraphInstantiate(&executable, graph, 0), 0);
    CHECK(cuStreamWaitValue32(stream, flag, 1, CU_STREAM_WAIT_VALUE_EQ), 0);
    CHECK(cudaGraphLaunch(executable, stream), 0);
    CHECK(cudaFreeAsync(memory, stream), 0);
    CHECK(cuStreamWriteValue32(other, flag, 1, 0), 0);
    CHECK(cudaStreamSynchronize(stream), 0);
    // The memory is free: the graph can be launched again.
    CHECK(cudaFree(memory), cudaErrorInvalidValue);
    CHECK(cudaGraphLaunch(executable, stream), 0);
    CHECK(first(memory), 8);
    CHECK(cudaFree(memory), 0);
    CHECK(cudaGraphExecDestroy(executable), 0);
    CHECK(cudaGraphDestroy(graph), 0);
    CHECK(cudaMemGetInfo(&after, &total), 0);
    CHECK(after == before, 1);
}

int main() {
    cudaStream_t stream;
    cudaGraph_t graph, other, child;
    cudaGraphExec_t executable, second;
    cudaGraphNode_t node, end;
    cudaGraphExecUpdateResultInfo updated;
    void *memory, *plain;
    CHECK(cudaStreamCreate(&stream), 0);
    CHECK(cudaMalloc(&plain, 64), 0);
    CHECK(cudaGraphCreate(&graph, 0), 0);
    cudaGraphNode_t begin = allocate(graph, &memory);
    CHECK(cudaGraphAddMemFreeNode(&end, graph, &begin, 1, plain), cudaErrorInvalidValue);
    CHECK(cudaGraphAddMemFreeNode(&end, graph, &begin, 1, memory), 0);
    CHECK(cudaGraphAddMemFreeNode(&node, graph, &begin, 1, memory), cudaErrorInvalidValue);
    // One executable graph, no copies, no fewer nodes and edges.
    CHECK(cudaGraphInstantiate(&executable, graph, 0), 0);
    CHECK(cudaGraphInstantiate(&second, graph, 0), cudaErrorInvalidValue);
    CHECK(cudaGraphClone(&other, graph), cudaErrorInvalidValue);
    CHECK(cudaGraphDestroyNode(end), cudaErrorInvalidValue);
    CHECK(cudaGraphRemoveDependencies(graph, &begin, &end, nullptr, 1), cudaErrorInvalidValue);
    CHECK(cudaGraphCreate(&other, 0), 0);
    CHECK(cudaGraphAddChildGraphNode(&node, other, nullptr, 0, graph), cudaErrorInvalidValue);
    for (int i = 0; i < 2; i++) CHECK(cudaGraphLaunch(executable, stream), 0);
    CHECK(cudaGraphExecDestroy(executable), 0);
    CHECK(cudaGraphInstantiate(&executable, graph, 0), 0);
    CHECK(cudaGraphExecDestroy(executable), 0);
    CHECK(cudaGraphDestroy(graph), 0);
    // A child may be moved with its memory, which is in use after a launch that does not free it.
    CHECK(cudaGraphCreate(&child, 0), 0);
    begin = allocate(child, &memory);
    cudaGraphNodeParams moved = {};
    moved.type = cudaGraphNodeTypeGraph;
    moved.graph.graph = child;
    moved.graph.ownership = cudaGraphChildGraphOwnershipMove;
    CHECK(cudaGraphAddNode(&node, other, nullptr, nullptr, 0, &moved), 0);
    // The restrictions are then those of the parent, and the child has further ones.
    CHECK(cudaGraphClone(&graph, other), cudaErrorInvalidValue);
    CHECK(cudaGraphDestroyNode(node), cudaErrorInvalidValue);
    CHECK(cudaGraphInstantiate(&executable, child, 0), cudaErrorInvalidValue);
    CHECK(cudaGraphDestroy(child), cudaErrorInvalidValue);
    CHECK(cudaGraphAddMemFreeNode(&end, child, &begin, 1, memory), cudaErrorInvalidValue);
    CHECK(cudaGraphCreate(&graph, 0), 0);
    CHECK(cudaGraphAddNode(&end, graph, nullptr, nullptr, 0, &moved), cudaErrorInvalidValue);
    CHECK(cudaGraphAddChildGraphNode(&end, graph, nullptr, 0, other), cudaErrorInvalidValue);
    moved.graph.graph = other;
    CHECK(cudaGraphAddNode(&end, child, nullptr, nullptr, 0, &moved), cudaErrorInvalidValue);
    CHECK(cudaGraphInstantiate(&executable, other, 0), 0);
    CHECK(cudaGraphInstantiate(&second, other, 0), cudaErrorInvalidValue);
    CHECK(cudaGraphExecUpdate(executable, child, &updated), cudaErrorInvalidValue);
    CHECK(cudaGraphLaunch(executable, stream), 0);
    CHECK(cudaGraphLaunch(executable, stream), cudaErrorInvalidValue);
    CHECK(cudaFreeAsync(memory, stream), 0);
    CHECK(cudaGraphLaunch(executable, stream), 0);
    CHECK(cudaFree(memory), 0);
    CHECK(cudaGraphExecDestroy(executable), 0);
    CHECK(cudaGraphDestroy(other), 0);
    CHECK(cudaGraphDestroy(graph), 0);
    update(stream);
    waits(stream);
    CHECK(cudaGraphCreate(&graph, 0), 0);
    begin = allocate(graph, &memory);
    CHECK(cudaGraphInstantiate(&executable, graph, 0), 0);
    CHECK(cudaGraphLaunch(executable, stream), 0);
    CHECK(cudaGraphLaunch(executable, stream), cudaErrorInvalidValue);
    CHECK(cudaFreeAsync(memory, stream), 0);
    CHECK(cudaGraphLaunch(executable, stream), 0);
    CHECK(cudaGraphExecDestroy(executable), 0);
    CHECK(cudaFree(memory), 0);
    CHECK(cudaGraphInstantiate(&executable, graph, cudaGraphInstantiateFlagAutoFreeOnLaunch), 0);
    for (int i = 0; i < 3; i++) CHECK(cudaGraphLaunch(executable, stream), 0);
    CHECK(cudaDeviceSynchronize(), 0);
    puts(failed ? "failed" : "passed");
    return failed;
}
