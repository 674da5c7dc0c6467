// What CUDA permits for graphs that allocate and free memory.
#include <cstdio>

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

int main() {
    cudaStream_t stream;
    cudaGraph_t graph, other, child;
    cudaGraphExec_t executable, second;
    cudaGraphNode_t node, end;
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
