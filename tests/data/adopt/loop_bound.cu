// The length of the loop is in no extent of the launch, and the block's extent is an argument.
template <typename F>
__global__ void decayed(const int B, const int T, const int C, const F* x, F* y) {
    const int at = blockIdx.x * T * C + threadIdx.x;
    F sum = 0;
    for (int i = 0; i < T; i++) {
        sum = sum / 2 + x[at + i * C];
        y[at + i * C] = sum;
    }
}

void run(int B, int T, int C, float* x, float* y) {
    dim3 blocks(B);
    dim3 threads(C);
    decayed<<<blocks, threads>>>(B, T, C, x, y);
}
