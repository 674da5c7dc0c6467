// Four warps each sum a quarter of K; the reduction area is reused for the next row without a barrier.
//@ verdict race
//@ launch kernel grid 1 block 128
//@ arg x f32[1024] input mod 11
//@ arg y f32[8] output
extern "C" __global__ void kernel(const float* x, float* y) {
    __shared__ float partial[128];
    int t = threadIdx.x;
    for (int row = 0; row < 8; ++row) {
        partial[t] = x[row * 128 + t]; // HAZARD
        __syncthreads();
        if (t == 0) {
            float sum = 0.0f;
            for (int k = 0; k < 128; ++k) sum += partial[k]; // CONFLICT
            y[row] = sum;
        }
    }
}
