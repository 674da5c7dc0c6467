// Launches the configuration for each shape and checks every element.
#define SWAPPED_IMPLEMENTATION
#include "swapped_launch.h"
#include <cstdio>
#include <vector>

int launch(int R, int C) {
    std::vector<float> x(R * C), y(R * C, -1.0f);
    for (int i = 0; i < R * C; ++i) x[i] = i;
    float *a = nullptr, *b = nullptr;
    cudaMalloc(&a, R * C * sizeof(float));
    cudaMalloc(&b, R * C * sizeof(float));
    cudaMemcpy(a, x.data(), R * C * sizeof(float), cudaMemcpyHostToDevice);
    if (swapped_launch(nullptr, a, b, R, C) != cudaSuccess) return std::printf("%s\n", swapped_error());
    cudaMemcpy(y.data(), b, R * C * sizeof(float), cudaMemcpyDeviceToHost);
    const int chosen = swapped_chosen();
    for (int i = 0; i < R * C; ++i)
        if (y[i] != 2 * x[i]) return std::printf("y[%d] is %g\n", i, y[i]);
    const swapped_tuned_launch made = swapped_launcher::Extents_mapped[chosen](R, C);
    return std::printf("right, %s, cluster %lld\n", swapped_tuned_table[chosen].problem, made.runs ? made.cluster[0] : 0);
}

int main() {
    launch(3500, 32);
    launch(890, 32);
    launch(100, 32);
    // Rows of 28 bytes: no tensor map has such strides, and the kernel takes none.
    launch(999, 7);
    // 29 blocks are no clusters of 4.
    launch(900, 32);
}
