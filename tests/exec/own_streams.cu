// Default streams of threads (--default-stream per-thread); the argument is the case.
#include <cstdio>
#include <cstring>
#include <thread>

__global__ void add(int *x) { x[threadIdx.x] += 1; }

int main(int, char **arguments) {
    int *x, h = -1;
    cudaStream_t created;
    cudaMalloc(&x, 128);
    cudaMemset(x, 0, 128);
    cudaDeviceSynchronize();
    cudaStreamCreate(&created);
    auto is = [&](const char *name) { return !strcmp(arguments[1], name); };
    auto in_thread = [&](bool waits) {
        std::thread([&] {
            add<<<1, 32>>>(x);
            if (waits) cudaStreamSynchronize(0);
        }).join();
        add<<<1, 32>>>(x);
    };
    if (is("created")) add<<<1, 32>>>(x), add<<<1, 32, 0, created>>>(x);
    if (is("legacy")) {
        add<<<1, 32>>>(x);
        add<<<1, 32, 0, cudaStreamLegacy>>>(x);
        add<<<1, 32, 0, created>>>(x);
    }
    if (is("thread")) in_thread(false);
    if (is("awaited")) in_thread(true);
    if (is("handle")) add<<<1, 32>>>(x), add<<<1, 32, 0, cudaStreamPerThread>>>(x);
    if (is("reset")) {
        add<<<1, 32>>>(x);
        cudaDeviceReset();
        cudaMalloc(&x, 128);
        cudaMemset(x, 0, 128);
        add<<<1, 32>>>(x);
    }
    if (is("capture")) {
        cudaGraph_t graph;
        cudaGraphExec_t executable;
        printf("%d ", cudaStreamBeginCapture(0, cudaStreamCaptureModeRelaxed));
        add<<<1, 32>>>(x);
        printf("%d ", cudaStreamEndCapture(0, &graph));
        cudaGraphInstantiate(&executable, graph, 0);
        cudaGraphLaunch(executable, 0);
        cudaStreamBeginCapture(0, cudaStreamCaptureModeRelaxed);
        printf("%d ", cudaMemcpy(&h, x, sizeof h, cudaMemcpyDeviceToHost));
        printf("%d ", cudaStreamEndCapture(0, &graph));
    }
    printf("%d ", cudaDeviceSynchronize());
    cudaMemcpy(&h, x, sizeof h, cudaMemcpyDeviceToHost);
    printf("%d\n", h);
}
