// Rows of 17 floats hold 16-byte vector stores: every row but each fourth is misaligned.
//@ verdict misaligned
//@ also uninitialized
//@ launch kernel grid 1 block 16
//@ arg x f32[64] input arange
//@ arg y f32[64] output
extern "C" __global__ void kernel(const float* x, float* y) {
    __shared__ __align__(16) float rows[16][17];
    int t = threadIdx.x;
    *(float4*)&rows[t][0] = *(const float4*)(x + 4 * t); // HAZARD
    __syncthreads();
    for (int i = 0; i < 4; ++i) y[4 * t + i] = rows[t][i];
}
