// Launches of one executable graph in two streams; the argument is the case.
#include <cstdio>
#include <cstring>

__global__ void add(int *x) { x[threadIdx.x] += 1; }

int main(int, char **arguments) {
    int *x, h = -1;
    cudaStream_t streams[2];
    cudaGraph_t graph;
    cudaGraphExec_t executable;
    cudaMalloc(&x, 128);
    cudaMemset(x, 0, 128);
    cudaDeviceSynchronize();
    for (auto &stream : streams) cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    cudaStreamBeginCapture(streams[0], cudaStreamCaptureModeGlobal);
    add<<<1, 32, 0, streams[0]>>>(x);
    cudaStreamEndCapture(streams[0], &graph);
    cudaGraphInstantiate(&executable, graph, 0);
    cudaGraphLaunch(executable, streams[0]);
    if (!strcmp(arguments[1], "copy")) cudaGraphInstantiate(&executable, graph, 0);
    cudaGraphLaunch(executable, streams[1]);
    printf("%d ", cudaDeviceSynchronize());
    cudaMemcpy(&h, x, sizeof h, cudaMemcpyDeviceToHost);
    printf("%d\n", h);
}
