// Graphs of child nodes: what belongs to a node ends with it, in copies as well.
#include <cstdio>
#define CHECK(call, code) do { int found_ = (int)(call); if (found_ != (code)) \
    printf("line %d: %d\n", __LINE__, found_), failed = 1; } while (0)
static int failed, ended;
static void CUDART_CB count(void *) { ended++; }

int main() {
  cudaGraph_t child, parent, clone, inner;
  cudaGraphNode_t node, copy;
  cudaGraphExec_t executable;
  cudaUserObject_t object;
  // A graph that was moved into a node ends with the node.
  CHECK(cudaGraphCreate(&child, 0), 0);
  CHECK(cudaGraphCreate(&parent, 0), 0);
  CHECK(cudaUserObjectCreate(&object, &ended, count, 1, cudaUserObjectNoDestructorSync), 0);
  CHECK(cudaGraphRetainUserObject(child, object, 1, cudaGraphUserObjectMove), 0);
  cudaGraphNodeParams moved = {};
  moved.type = cudaGraphNodeTypeGraph;
  moved.graph.graph = child;
  moved.graph.ownership = cudaGraphChildGraphOwnershipMove;
  CHECK(cudaGraphAddNode(&node, parent, nullptr, nullptr, 0, &moved), 0);
  CHECK(cudaGraphDestroyNode(node), 0);
  CHECK(ended, 1);
  CHECK(cudaGraphDestroy(child), cudaErrorInvalidValue);
  // So does a copy, which the program may not destroy; nor that of a clone.
  CHECK(cudaGraphCreate(&child, 0), 0);
  CHECK(cudaGraphAddChildGraphNode(&node, parent, nullptr, 0, child), 0);
  CHECK(cudaGraphClone(&clone, parent), 0);
  CHECK(cudaGraphNodeFindInClone(&copy, node, clone), 0);
  CHECK(cudaGraphChildGraphNodeGetGraph(node, &inner), 0);
  CHECK(cudaGraphDestroy(inner), cudaErrorInvalidValue);
  CHECK(cudaGraphChildGraphNodeGetGraph(copy, &inner), 0);
  CHECK(cudaGraphDestroy(inner), cudaErrorInvalidValue);
  CHECK(cudaGraphInstantiate(&executable, clone, 0), 0);
  CHECK(cudaGraphLaunch(executable, 0), 0);
  CHECK(cudaDeviceSynchronize(), 0);
  puts(failed ? "failed" : "passed");
  return failed;
}
