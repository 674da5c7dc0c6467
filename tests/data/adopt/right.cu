// Ten right kernels as people write them; tests/adopt.rs breaks each in a typical way.
#include <cuda_runtime.h>
#include <stdio.h>
#define TILE 16

__global__ void block_sum(const float *in, float *out, int n) {
  __shared__ float part[256];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  part[threadIdx.x] = i < n ? in[i] : 0.0f;
  __syncthreads(); // after the load
  for (int s = blockDim.x / 2; s > 0; s >>= 1) {
    if (threadIdx.x < s) part[threadIdx.x] += part[threadIdx.x + s];
    __syncthreads(); // after a step
  }
  if (threadIdx.x == 0) out[blockIdx.x] = part[0];
}

__global__ void transposed(float *out, const float *in, int rows, int cols) {
  __shared__ float tile[TILE][TILE + 1];
  int x = blockIdx.x * TILE + threadIdx.x, y = blockIdx.y * TILE + threadIdx.y;
  if (x < cols && y < rows) tile[threadIdx.y][threadIdx.x] = in[y * cols + x];
  __syncthreads();
  x = blockIdx.y * TILE + threadIdx.x, y = blockIdx.x * TILE + threadIdx.y;
  if (x < rows && y < cols) out[y * rows + x] = tile[threadIdx.x][threadIdx.y];
}

__global__ void saxpy(float a, const float *x, float *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i] + y[i];
}

__global__ void row_softmax(float *out, const float *in, int rows, int cols) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  float best = -1e30f, sum = 0.0f;
  for (int c = 0; c < cols; ++c) best = fmaxf(best, in[row * cols + c]);
  for (int c = 0; c < cols; ++c) sum += expf(in[row * cols + c] - best);
  for (int c = 0; c < cols; ++c) out[row * cols + c] = expf(in[row * cols + c] - best) / sum;
}

__global__ void blurred(const float *in, float *out, int n) {
  __shared__ float near[258];
  int i = blockIdx.x * 256 + threadIdx.x, l = threadIdx.x + 1;
  near[l] = i < n ? in[i] : 0.0f;
  if (threadIdx.x == 0) near[0] = i > 0 ? in[i - 1] : 0.0f;
  if (threadIdx.x == 255) near[257] = i + 1 < n ? in[i + 1] : 0.0f;
  __syncthreads();
  if (i < n) out[i] = (near[l - 1] + near[l] + near[l + 1]) / 3;
}

__global__ void histogram(const unsigned char *data, unsigned int *bins, int n) {
  __shared__ unsigned int own[256];
  own[threadIdx.x] = 0;
  __syncthreads();
  for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256) atomicAdd(&own[data[i]], 1u);
  __syncthreads();
  atomicAdd(&bins[threadIdx.x], own[threadIdx.x]);
}

__global__ void batched(const float *a, const float *b, float *c, int m, int batch) {
  int x = blockIdx.x * TILE + threadIdx.x, y = blockIdx.y * TILE + threadIdx.y;
  const float *mine = a + blockIdx.z * m * m, *other = b + blockIdx.z * m * m;
  float *to = c + blockIdx.z * m * m;
  if (x >= m || y >= m) return;
  float sum = 0;
  for (int k = 0; k < m; ++k) sum += mine[y * m + k] * other[k * m + x];
  to[y * m + x] = sum;
}

__global__ void row_norm(float *x, int rows, int cols) {
  int lane = threadIdx.x % 32, row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
  if (row >= rows) return;
  float sum = 0;
  for (int c = lane; c < cols; c += 32) sum += x[row * cols + c] * x[row * cols + c];
  for (int o = 16; o > 0; o /= 2) sum += __shfl_xor_sync(0xffffffff, sum, o);
  for (int c = lane; c < cols; c += 32) x[row * cols + c] *= rsqrtf(sum + 1e-6f);
}

__global__ void difference(const int *in, int *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n - 1) out[i] = in[i + 1] - in[i];
}

__global__ void gemm(const float *A, const float *B, float *C, int m, int n, int k, float beta) {
  int x = blockIdx.x * TILE + threadIdx.x, y = blockIdx.y * TILE + threadIdx.y;
  if (x >= n || y >= m) return;
  float sum = 0;
  for (int i = 0; i < k; ++i) sum += A[y * k + i] * B[i * n + x];
  C[y * n + x] = sum + beta * C[y * n + x];
}

int main() {
  int n = 1 << 16, rows = 96, cols = 160, m = 48, batch = 4, k = 64;
  float *x, *y, *z, *p, *a, *b, *c;
  unsigned char *bytes;
  unsigned int *bins;
  int *i, *d;
  int blocks = (n + 255) / 256;
  cudaMalloc(&x, n * sizeof(float));
  cudaMalloc(&y, n * sizeof(float));
  cudaMalloc(&p, blocks * sizeof(float));
  block_sum<<<blocks, 256>>>(x, p, n);
  saxpy<<<blocks, 256>>>(2.0f, x, y, n);
  blurred<<<blocks, 256>>>(x, y, n);
  float *in, *out;
  cudaMalloc(&in, rows * cols * sizeof(float));
  cudaMalloc(&out, rows * cols * sizeof(float));
  dim3 tiles((cols + TILE - 1) / TILE, (rows + TILE - 1) / TILE);
  transposed<<<tiles, dim3(TILE, TILE)>>>(out, in, rows, cols);
  row_softmax<<<(rows + 31) / 32, 32>>>(out, in, rows, cols);
  row_norm<<<(rows + 3) / 4, 128>>>(out, rows, cols);
  cudaMalloc(&bytes, n);
  cudaMalloc(&bins, 256 * sizeof(unsigned int));
  histogram<<<8, 256>>>(bytes, bins, n);
  cudaMalloc(&i, n * sizeof(int));
  cudaMalloc(&d, (n - 1) * sizeof(int));
  difference<<<blocks, 256>>>(i, d, n);
  cudaMalloc(&a, batch * m * m * sizeof(float));
  cudaMalloc(&b, batch * m * m * sizeof(float));
  cudaMalloc(&c, batch * m * m * sizeof(float));
  batched<<<dim3((m + TILE - 1) / TILE, (m + TILE - 1) / TILE, batch), dim3(TILE, TILE)>>>(a, b, c, m, batch);
  float *A, *B, *C;
  cudaMalloc(&A, m * k * sizeof(float));
  cudaMalloc(&B, k * n * sizeof(float));
  cudaMalloc(&C, m * n * sizeof(float));
  gemm<<<dim3((n + TILE - 1) / TILE, (m + TILE - 1) / TILE), dim3(TILE, TILE)>>>(A, B, C, m, n, k, 0.5f);
  return 0;
}
