// y[r][c] = sum over i, j of x[r + i][c + j] * f[i][j], one thread an element, float64 sums:
// obviously right, never tuned. Grid [ceil(HEIGHT WIDTH / 128)], block [128].

#ifndef HEIGHT
#define HEIGHT 4096         // Rows of y
#endif
#ifndef WIDTH
#define WIDTH 4096          // Columns of y
#endif
#ifndef FILTER_HEIGHT
#define FILTER_HEIGHT 15    // Rows of the filter
#endif
#ifndef FILTER_WIDTH
#define FILTER_WIDTH 15     // Columns of the filter
#endif

extern "C" __global__ void conv2d_reference(const float* x, const float* filter, float* y) {
    const long long at = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= (long long)HEIGHT * WIDTH) return;
    const long long r = at / WIDTH, c = at % WIDTH;
    double sum = 0.0;
    for (int i = 0; i < FILTER_HEIGHT; ++i)
        for (int j = 0; j < FILTER_WIDTH; ++j)
            sum += (double)x[(r + i) * (WIDTH + FILTER_WIDTH - 1) + c + j] * filter[i * FILTER_WIDTH + j];
    y[at] = (float)sum;
}
