// Dynamic shared memory, cooperative groups, two kernels; the second misses a barrier.
#include <cooperative_groups.h>
#include <float.h>
namespace cg = cooperative_groups;

__global__ void row_max(float *out, const float *in, int rows, int columns) {
  extern __shared__ float part[];
  cg::thread_block block = cg::this_thread_block();
  float best = -FLT_MAX;
  for (int i = threadIdx.x; i < columns; i += blockDim.x) best = fmaxf(best, in[blockIdx.x * columns + i]);
  part[threadIdx.x] = best;
  block.sync();
  for (int stride = blockDim.x / 2; stride > 0; stride /= 2) {
    if (threadIdx.x < stride) part[threadIdx.x] = fmaxf(part[threadIdx.x], part[threadIdx.x + stride]);
    block.sync();
  }
  if (threadIdx.x == 0) out[blockIdx.x] = part[0];
}

__global__ void shift(float *data, int n) {
  __shared__ float part[256];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) part[threadIdx.x] = data[i];
  // A barrier is missing here.
  if (i + 1 < n && threadIdx.x < 255) data[i] = part[threadIdx.x + 1];
}

void launch(float *out, float *in, int rows, int columns, int block_size) {
  row_max<<<rows, block_size, block_size * sizeof(float)>>>(out, in, rows, columns);
  shift<<<(rows * columns + 255) / 256, 256>>>(in, rows * columns);
}

int main() {
  int rows = 64, columns = 300;
  float *out, *in;
  cudaMalloc(&out, rows * sizeof(float));
  cudaMalloc(&in, rows * columns * sizeof(float));
  launch(out, in, rows, columns, 128);
}
