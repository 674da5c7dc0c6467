// Kernels behind bindings for PyTorch: launches stand in macros, sizes are asked of tensors.
#include <cuda_runtime.h>
#include <torch/extension.h>

#define FLOAT4(value) (reinterpret_cast<float4 *>(&(value))[0])

__global__ void shift_f32_kernel(float *x, float *y, int N) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < N) y[i] = x[i] + 1.0f;
}

__global__ void shift_f32x4_kernel(float *x, float *y, int N) {
  int i = 4 * (blockIdx.x * blockDim.x + threadIdx.x);
  float4 v = FLOAT4(x[i]);
  v.x += 1.0f;
  v.y += 1.0f;
  v.z += 1.0f;
  v.w += 1.0f;
  if (i < N) FLOAT4(y[i]) = v;
}

#define BIND_SHIFT(tag, type,                                              \
                   n)                                                      \
  void shift_##tag(torch::Tensor x, torch::Tensor y) {                     \
    int N = 1;                                                             \
    for (int i = 0; i < x.dim(); ++i) N *= x.size(i);                      \
    dim3 block(256 / (n));                                                 \
    dim3 grid((N + 256 - 1) / 256);                                        \
    shift_##tag##_kernel<<<grid, block>>>(                                 \
        reinterpret_cast<type *>(x.data_ptr()),                            \
        reinterpret_cast<type *>(y.data_ptr()), N);                        \
  }

BIND_SHIFT(f32, float, 1)
BIND_SHIFT(f32x4, float, 4)

// One row a block, a thread an element.
template <const int K>
__global__ void centre_rows_kernel(float *x, float *y, int rows, int columns) {
  __shared__ float all[K];
  int at = blockIdx.x * columns + threadIdx.x;
  all[threadIdx.x] = x[at];
  __syncthreads();
  float sum = 0.0f;
  for (int i = 0; i < K; ++i) sum += all[i];
  y[at] = x[at] - sum / K;
}

#define LAUNCH_CENTRE(W)                                                   \
  centre_rows_kernel<(W)><<<grid, block>>>((float *)x.data_ptr(),          \
                                           (float *)y.data_ptr(), S, (W));

#define DISPATCH_CENTRE(S, W)                                              \
  dim3 block((W));                                                         \
  dim3 grid((S));                                                          \
  switch ((W)) {                                                           \
  case 64:                                                                 \
    LAUNCH_CENTRE(64)                                                      \
    break;                                                                 \
  case 128:                                                                \
    LAUNCH_CENTRE(128)                                                     \
    break;                                                                 \
  case 512:                                                                \
    LAUNCH_CENTRE(512)                                                     \
    break;                                                                 \
  default:                                                                 \
    throw std::runtime_error("64, 128 or 512 columns");                    \
  }

void centre_rows(torch::Tensor x, torch::Tensor y) {
  const int S = x.size(0);
  const int W = x.size(1);
  DISPATCH_CENTRE(S, W)
}

// What a function's template says is said by its caller.
template <const int kHeadDim>
__global__ void scale_heads_kernel(float *q, int tokens) {
  int token = blockIdx.x * blockDim.x + threadIdx.x;
  if (token >= tokens) return;
  for (int d = 0; d < kHeadDim; ++d) q[token * kHeadDim + d] *= 0.125f;
}

template <const int kHeadDim>
void launch_scale_heads(torch::Tensor q) {
  constexpr int kThreads = (kHeadDim < 128) ? 128 : 64;
  const int tokens = q.size(0);
  scale_heads_kernel<kHeadDim><<<(tokens + kThreads - 1) / kThreads, kThreads>>>(
      (float *)q.data_ptr(), tokens);
}

void scale_heads(torch::Tensor q) {
  switch (q.size(1)) {
  case 64:
    launch_scale_heads<64>(q);
    break;
  case 128:
    launch_scale_heads<128>(q);
    break;
  }
}

// Three elements a point: no size says so.
__global__ void sum_points_kernel(float *points, float *sums, int count, dim3 grid) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  points += i * 3;
  sums[i] = points[0] + points[1] + points[2] + 0.0f * grid.x;
}

void sum_points(torch::Tensor points, torch::Tensor sums) {
  const int count = points.size(0);
  dim3 grid((count + 127) / 128);
  sum_points_kernel<<<grid, 128>>>((float *)points.data_ptr(), (float *)sums.data_ptr(), count, grid);
}
